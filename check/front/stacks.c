/*
 * stacks.c: variables of functions that have returned, and that somebody still uses.
 *
 * A stack grows downwards: while a function of the front runs, the variables of all who
 * have called one another lie above its frame. What lies below was a variable of a
 * function that has returned ("If an object is referred to outside of its lifetime, the
 * behavior is undefined": C17, 6.2.4).
 */
#define _GNU_SOURCE
#include "handles.h"
#include "stacks.h"

#include <stdatomic.h>
#include <stdlib.h>

bool stacks_own(const void *address) {
    static __thread uintptr_t from, to;
    if (to == 0)
        front_stack(pthread_self(), &from, &to);
    return (uintptr_t)address >= from && (uintptr_t)address < to;
}

/* --- Arguments of functions on a stream -----------------------------------------------
 */

struct stack_argument {
    const char *address;
    struct judge_at at;
    atomic_bool used;
    atomic_int holders; // the thread that lent it, and the function
};

/* A few: of what else there is, nothing is said. */
enum { MOST = 8 };
static __thread struct stack_argument *lent[MOST];
__thread int stacks_arguments;

static void let_go(struct stack_argument *argument) {
    if (atomic_fetch_sub(&argument->holders, 1) == 1)
        free(argument);
}

static void forget_used(void) {
    for (int i = 0; i < stacks_arguments; i++)
        if (atomic_load(&lent[i]->used)) {
            let_go(lent[i]);
            lent[i--] = lent[--stacks_arguments];
        }
}

struct stack_argument *stacks_argument(const void *address, const char *frame,
                                       struct judge_at at) {
    const char *place = address;
    if (place < frame || !front_checks || !stacks_own(place) || !stacks_own(frame))
        return NULL;
    forget_used();
    if (stacks_arguments == MOST)
        return NULL;
    struct stack_argument *argument = front_alloc(sizeof *argument);
    argument->address = place;
    argument->at = at;
    argument->holders = 2;
    return lent[stacks_arguments++] = argument;
}

void stacks_argument_used(struct stack_argument *argument) {
    if (!argument)
        return;
    atomic_store(&argument->used, true);
    let_go(argument);
}

void stacks_look(const char *frame, struct judge_at at) {
    forget_used();
    if (!stacks_own(frame))
        return;
    for (int i = 0; i < stacks_arguments; i++) {
        if (lent[i]->address >= frame)
            continue;
        judge_function_argument_gone(front_in(), lent[i]->at, at);
        front_out();
        let_go(lent[i]);
        lent[i--] = lent[--stacks_arguments];
    }
}
