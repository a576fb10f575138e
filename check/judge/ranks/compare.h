/*
 * compare.h: what the ranks of a communicator must agree on, compared by one of them.
 */
#ifndef COMPARE_H
#define COMPARE_H

#include "base/base.h"
#include "judge.h"

void compare_receive(struct judge *j, const void *data, size_t bytes); // MESSAGE_CALLS
void compare_look(struct judge *j); // says what has waited long enough for the others
struct compare {
    struct map comms;
    struct misfit *misfits;
    size_t nmisfits, misfits_size;
    struct overdue {
        struct kept *kept;
        struct collective *collective;
    } * overdue;
    size_t noverdue, overdue_size;
};
void compare_free(struct compare *compare);

#endif
