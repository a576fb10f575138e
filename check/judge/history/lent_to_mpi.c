/*
 * lent_to_mpi.c: what MPI has until a request is completed, and operations that use it
 * before.
 *
 * "A nonblocking send call indicates that the system may start copying data out of the
 * send buffer. The sender should not modify any part of the send buffer" until it is
 * completed; of a receive's, "no part should be accessed" (MPI 4.1, 3.7.2).
 */
#include "history/allocations.h"
#include "history/functions.h"
#include "ranks/calls.h"

const struct lent *lent_part(const struct uses *uses, uint64_t from, uint64_t to,
                             bool write) {
    for (size_t i = 0; i < uses->lent.n; i++) {
        const struct lent *lent = uses->lent.at[i];
        if (lent && lent->from < to && from < lent->to && (write || lent->write))
            return lent;
    }
    return NULL;
}

int judge_memory_lent(struct judge *j, const void *start, size_t bytes, bool write,
                      struct judge_at at) {
    uint64_t from = address_of(start);
    struct lent *lent = must_alloc(sizeof *lent);
    *lent = (struct lent){.from = from, .to = from + bytes, .write = write, .at = at};
    return numbers_add(&j->uses->lent, lent);
}

void judge_memory_back(struct judge *j, int number) {
    numbers_drop(&j->uses->lent, number, free);
}

void lent_report(struct judge *j, const struct allocation *a, const char *words,
                 const char *verb, struct judge_at at, const struct lent *lent) {
    struct finding f = finding(FINDING_race_mpi, at.site, lent->at.site);
    set(&f, "call", "%s", at.call);
    set(&f, "does", "%s", verb);
    set_words_at(j, &f, "here", words, at.site);
    set_at(j, &f, "lent", lent->at);
    set(&f, "lent_does", "%s", does(lent->write));
    if (a)
        set_allocation(j, &f, a);
    say(j, &f);
}

/* What calls of NCCL, functions of the program or kernels come before it may make it wait
 * until MPI is done: then nothing is said. */
void lent_check(struct judge *j, const struct allocation *a, uint64_t from, uint64_t to,
                bool write, const struct use *use, const struct clock *clock) {
    const struct lent *lent = lent_part(j->uses, from, to, write);
    if (lent && !j->uses->kernels && !calls_before(j, use->slot, use->seq, clock) &&
        !functions_before(j, use))
        lent_report(j, a, use->is_call ? call_words(&use->call) : use->at.call,
                    does(write), use->at, lent);
}
