/*
 * failed.h: calls that failed, and whether the program asked why.
 */
#ifndef FAILED_H
#define FAILED_H

#include "say/finding.h"

struct failures {
    struct unlooked { // of one thread
        int thread;
        size_t n, serial;
        struct judge_at first;
        char *text; // what the library says of the first
    } * at;
    size_t n, size, serial;
    struct failed_call { // to be noted, if the thread does not ask why; of each one
        int thread;
        struct judge_at at;
        char *code, *text;
        double since;
        struct failed_call *next;
    } * held;
    char *noted; // the newest of them
};
void failures_free(struct failures *failures);
// a call of the thread that is in
void failed(struct judge *j, bool cuda, const char *code, const char *text,
            struct judge_at at);
/* Notes of calls that failed: those of a thread, or of all (0); or only what has been
 * held back for a moment. */
void failed_said(struct judge *j, int thread, bool later);
/* How many failed of which nobody asked why, in all threads; the first, and what was said
 * of it. */
size_t failed_unlooked(const struct judge *j, struct judge_at *first, const char **words);
/* "3 calls returned errors, the first: …". */
void add_failures(struct judge *j, struct text *text, size_t n, struct judge_at first,
                  const char *words);
void set_failures(struct judge *j, struct finding *f); // {failures}, likewise

#endif
