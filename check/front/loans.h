/*
 * loans.h: memory of the program's own that a graph uses at each launch.
 */
#ifndef LOANS_H
#define LOANS_H

#include "front.h"

struct loans;

/* All inside front_in. */
void loans_capture_begins(void);
/* What is captured uses the memory at `start` at each launch. `frame`: of the call. */
enum loan_use { LOAN_COPY, LOAN_ARGUMENT };
void loans_lend(enum loan_use use, const void *start, const char *frame,
                struct judge_at at);
/* What was lent to it; NULL: nothing, or nobody knows to which of several. */
struct loans *loans_capture_ends(void);

struct loans *loans_keep(struct loans *loans); // one more holds them; NULL: nothing
void loans_drop(struct loans *loans);

/* The program gives nodes of its graphs other addresses: from now on nothing is known. */
void loans_change(void);

/* A launch: is everything still there? `frame`: of the call. */
void loans_launched(struct judge *j, const struct loans *loans, const char *frame,
                    struct judge_at at);

#endif
