/*
 * functions.c: functions of the program that are queued on a stream: what comes before
 * them, what they let the host know.
 */
#include "order/functions.h"

#include "base/self.h"

struct function {
    bool captured; // a graph may launch it again and again
    struct run {   // queued, the oldest first
        int slot;
        uint64_t seq;
        struct clock clock; // what it comes after
    } * runs;
    size_t first, nruns, size;
};

struct functions {
    struct function **at;
    size_t n, size, queued;
    int *free;
    size_t nfree, free_size;
};

struct functions *functions_new(void) {
    return must_alloc(sizeof(struct functions));
}

static void function_free(struct function *f) {
    for (size_t i = f->first; i < f->nruns; i++)
        clock_free(&f->runs[i].clock);
    free(f->runs);
    free(f);
}

void functions_free(struct functions *functions) {
    for (size_t i = 0; i < functions->n; i++)
        if (functions->at[i])
            function_free(functions->at[i]);
    free(functions->at);
    free(functions->free);
    free(functions);
}

int function_new(struct judge *j, bool captured) {
    struct functions *all = j->functions;
    int number = all->nfree ? all->free[--all->nfree] : (int)all->n++;
    ROOM(all->at, (size_t)number, &all->size);
    all->at[number] = must_alloc(sizeof(struct function));
    all->at[number]->captured = captured;
    return number;
}

static struct function *function_of(struct judge *j, int number) {
    return number >= 0 && (size_t)number < j->functions->n ? j->functions->at[number]
                                                           : NULL;
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
    if (j->thread)
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
    if (!f->captured) {
        struct functions *all = j->functions;
        function_free(f);
        all->at[number] = NULL;
        ROOM(all->free, all->nfree, &all->free_size);
        all->free[all->nfree++] = number;
    }
}

bool functions_queued(const struct judge *j) {
    return j->functions->queued > 0;
}

bool function_runs(const struct judge *j) {
    return j->thread && j->thread->function;
}

bool function_before(const struct function *f, const struct use *use) {
    const struct run *run = &f->runs[f->first];
    return (use->slot == run->slot && use->seq > run->seq) ||
           clock_covers(&use->behind, run->slot, run->seq);
}

bool functions_before(const struct judge *j, const struct use *use) {
    const struct functions *all = j->functions;
    for (size_t i = 0; i < all->n && all->queued > 0; i++) {
        const struct function *f = all->at[i];
        if (f && f->first < f->nruns && function_before(f, use))
            return true;
    }
    return false;
}
