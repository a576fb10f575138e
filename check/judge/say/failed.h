/*
 * failed.h: calls that failed, and whether the program asked why.
 */
#ifndef FAILED_H
#define FAILED_H

#include "say/finding.h"

struct failures {
    struct unlooked { // of one thread
        int thread;
        bool noted; // the first
        size_t n, serial;
        struct judge_at first;
        char *text; // what the library says of the first
    } * at;
    size_t n, size, serial;
};
void failures_free(struct failures *failures);
// a call of the thread that is in; a note says so, unless `code` is NULL
void failed(struct judge *j, const char *code, const char *text, struct judge_at at);
/* How many failed of which nobody asked why, in all threads; the first, and what was said
 * of it. */
size_t failed_unlooked(const struct judge *j, struct judge_at *first, const char **words);
/* "3 calls returned errors, the first: …". */
void add_failures(struct judge *j, struct text *text, size_t n, struct judge_at first,
                  const char *words);
void set_failures(struct judge *j, struct finding *f); // {failures}, likewise

#endif
