/*
 * stacks.h: variables of functions that have returned.
 */
#ifndef STACKS_H
#define STACKS_H

#include "front.h"

/* Whether an address lies on the stack that this thread was made with. A program may run
 * on others (makecontext), of which nothing is known. */
bool stacks_own(const void *address);

/* The argument of a function that is queued on a stream: it has to live until the
 * function begins, at least. NULL: it is none of this thread's variables. */
struct stack_argument *stacks_argument(const void *address, const char *frame,
                                       struct judge_at at);
void stacks_argument_used(struct stack_argument *argument); // the function begins

extern __thread int stacks_arguments; // of this thread that have not been used
/* At the entry of a call. `frame`: of the call itself; what lies below it on the stack
 * belonged to functions that have returned. */
void stacks_look(const char *frame, struct judge_at at);

#endif
