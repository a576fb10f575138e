/*
 * loans.c: memory of the program's own that a graph uses at each launch.
 *
 * A copy that is captured reads or writes the host's memory when the graph is launched,
 * and a function gets its argument then. (An H200 reads what is there at the launch.) The
 * memory has to live as long as the graph is launched: "If an object is referred to
 * outside of its lifetime, the behavior is undefined" (C17, 6.2.4).
 */
#define _GNU_SOURCE
#include "handles.h"
#include "heap.h"
#include "loans.h"
#include "stacks.h"

#include <dlfcn.h>
#include <stdlib.h>

struct loans {
    int holders;
    struct loan {
        enum loan_use use;
        const char *start;
        struct heap_need *heap; // NULL: it lies on the stack of `thread`
        pthread_t thread;
        bool told;
        struct judge_at at;
        struct loan *next;
    } * first;
};

/* Those of the capture that is under way. While there are two nobody tells which of them
 * a call belongs to. */
static struct loans *captured;
static int captures;
static bool several, changed;

/* Few are looked after at a time: the others are not known to be gone. */
enum { MOST = 32 };
static int looked_after;

void loans_capture_begins(void) {
    several |= captures++ > 0;
}

void loans_lend(enum loan_use use, const void *start, const char *frame,
                struct judge_at at) {
    Dl_info object;
    bool on_stack = stacks_own(start) && (const char *)start >= frame;
    if (captures != 1 || several || !front_checks || !start)
        return;
    struct heap_need *heap = NULL;
    if (!on_stack && looked_after < MOST && dladdr(start, &object) == 0)
        heap = heap_needs(HEAP_GRAPH, start, 1, at);
    if (!on_stack && !heap)
        return;
    looked_after += heap != NULL;
    struct loan *loan = front_alloc(sizeof *loan);
    *loan = (struct loan){
        .use = use, .start = start, .thread = pthread_self(), .heap = heap, .at = at};
    if (!captured) {
        captured = front_alloc(sizeof *captured);
        *captured = (struct loans){.holders = 1};
    }
    loan->next = captured->first;
    captured->first = loan;
}

struct loans *loans_capture_ends(void) {
    struct loans *ended = captured;
    if (--captures > 0)
        return NULL;
    captured = NULL;
    if (several) {
        several = false;
        loans_drop(ended);
        return NULL;
    }
    return ended;
}

struct loans *loans_keep(struct loans *loans) {
    if (loans)
        loans->holders++;
    return loans;
}

void loans_drop(struct loans *loans) {
    if (!loans || --loans->holders > 0)
        return;
    for (struct loan *loan = loans->first, *next; loan; loan = next) {
        next = loan->next;
        looked_after -= loan->heap != NULL;
        heap_done(loan->heap);
        free(loan);
    }
    free(loans);
}

void loans_change(void) {
    changed = true;
}

void loans_launched(struct judge *j, const struct loans *loans, const char *frame,
                    struct judge_at at) {
    if (!loans || changed)
        return;
    for (struct loan *loan = loans->first; loan; loan = loan->next) {
        struct judge_at freed = {0};
        bool gone = loan->heap ? heap_given_back(loan->heap, &freed)
                               : pthread_equal(loan->thread, pthread_self()) &&
                                     stacks_own(frame) && loan->start < frame;
        if (!gone || loan->told)
            continue;
        loan->told = true;
        judge_graph_memory_gone(j, loan->use == LOAN_ARGUMENT, loan->at, freed, at);
    }
}
