/*
 * functions.c: functions of the program that are queued on a stream: what comes before
 * them, what they let the host know.
 */
#include "history/functions.h"

#include "history/streams.h"

struct function {
    bool captured; // a graph may launch it again and again
    struct run {   // queued, the oldest first
        int slot;
        uint64_t seq;
        struct clock clock; // what it comes after
    } * runs;
    size_t first, nruns, size;
};

static void function_free(void *function) {
    struct function *f = function;
    for (size_t i = f->first; i < f->nruns; i++)
        clock_free(&f->runs[i].clock);
    free(f->runs);
    free(f);
}

void functions_free(struct functions *functions) {
    numbers_clear(&functions->all, function_free);
    free(functions);
}

int function_new(struct judge *j, bool captured) {
    struct function *f = must_alloc(sizeof *f);
    f->captured = captured;
    return numbers_add(&j->functions->all, f);
}

static struct function *function_of(struct judge *j, int number) {
    return numbers_get(&j->functions->all, number);
}

void function_queued(struct judge *j, int number, int slot) {
    struct function *f = function_of(j, number);
    if (!f)
        return;
    if (f->first == f->nruns)
        f->first = f->nruns = 0;
    ROOM(f->runs, f->nruns, &f->size);
    struct run *run = &f->runs[f->nruns++];
    *run = (struct run){.slot = slot};
    clock_copy(&run->clock, order_clock(j->order, slot));
    run->seq = order_next(j->order, slot);
    j->functions->queued++;
}

void function_begins(struct judge *j, int number) {
    struct function *f = function_of(j, number);
    if (!f || f->first == f->nruns)
        return;
    // It may pass on to the host what it knows.
    clock_join(&j->known, &f->runs[f->first].clock);
    j->thread->function = f;
}

void function_ends(struct judge *j, int number) {
    struct function *f = function_of(j, number);
    if (!f || f->first == f->nruns)
        return;
    struct run *run = &f->runs[f->first++];
    clock_reach(&j->known, run->slot, run->seq);
    clock_free(&run->clock);
    j->functions->queued--;
    for (struct thread *t = j->threads; t; t = t->next)
        if (t->function == f)
            t->function = NULL;
    if (!f->captured)
        numbers_drop(&j->functions->all, number, function_free);
}

bool functions_queued(const struct judge *j) {
    return j->functions->queued > 0;
}

bool function_before(const struct function *f, const struct use *use) {
    const struct run *run = &f->runs[f->first];
    return (use->slot == run->slot && use->seq > run->seq) ||
           clock_covers(&use->behind, run->slot, run->seq);
}

bool functions_before(const struct judge *j, const struct use *use) {
    const struct numbers *all = &j->functions->all;
    for (size_t i = 0; i < all->n && functions_queued(j); i++) {
        const struct function *f = all->at[i];
        if (f && f->first < f->nruns && function_before(f, use))
            return true;
    }
    return false;
}
