/*
 * functions.h: functions of the program that are queued on a stream.
 */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "history/uses.h"

struct function;
/* A function of the program that is queued on a stream. */
struct functions {
    struct numbers all;
    size_t queued;
};
void functions_free(struct functions *functions);
int function_new(struct judge *j, bool captured);
void function_queued(struct judge *j, int function, int slot);
void function_begins(struct judge *j, int function);
void function_ends(struct judge *j, int function);
bool functions_queued(const struct judge *j);
/* Whether it comes before that use of memory. */
bool function_before(const struct function *function, const struct use *use);
/* Whether any that has not ended comes before it. */
bool functions_before(const struct judge *j, const struct use *use);

#endif
