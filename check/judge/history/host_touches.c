/*
 * host_touches.c: the host uses memory, or gives it back, that queued operations use.
 *
 * CUDA Runtime API, "Memory Management", "Stream Ordered Memory Allocator".
 */
#include "history/allocations.h"
#include "ranks/round_trips.h"
#include "history/functions.h"

/* Not if the function of the program that runs in this thread comes before that use, or
 * one that has not ended, and may wait for the host. */
static bool may_have_begun(const struct use *use, void *self) {
    const struct judge *j = self;
    const struct function *f = j->thread->function;
    return !(f && function_before(f, use)) && !functions_before(j, use);
}

static bool not_of_default_stream(const struct use *use, void *self) {
    (void)self;
    return !use->legacy;
}

static const struct use *unseen_use(struct judge *j, const struct allocation *a,
                                    uint64_t from, uint64_t to, bool write,
                                    bool *its_write) {
    from = from > a->start ? from : a->start;
    to = to < a->end ? to : a->end;
    return history_beyond(&a->history, from, to, write, &j->known, may_have_begun, j,
                          its_write);
}

/* `clock`: after what `at` comes. `verb`: NULL, of a handle. */
static bool report_host(struct judge *j, const char *verb, struct judge_at at,
                        const struct use *use, const struct clock *clock,
                        bool in_stream) {
    struct finding f =
        finding(verb ? FINDING_race_host : FINDING_race_handle, at.site, use->at.site);
    f.hint = in_stream ? HINT_between_streams : HINT_OF_FINDING;
    if (round_trip_possible(j, use->slot, use->seq, clock))
        return false;
    set_here(j, &f, at);
    if (verb)
        set(&f, "does", "%s", verb);
    set_queued(j, &f, use);
    set_failures(j, &f);
    say(j, &f);
    return true;
}

void uses_freed(struct judge *j, const void *start, int slot, struct judge_at at) {
    struct uses *uses = j->uses;
    size_t i = allocation_position(uses, address_of(start));
    struct allocation *a = i > 0 ? uses->table[i - 1] : NULL;
    if (!a || a->start != address_of(start))
        return;
    // "Managing memory allocations using cudaMalloc and cudaFree causes the GPU to
    // synchronize across all executing CUDA streams" (CUDA C++ Programming Guide, "Stream
    // Ordered Memory Allocator"). So what uses the memory is done before it is gone.
    bool its_write,
        waits = slot < 0 && (a->kind == JUDGE_DEVICE || a->kind == JUDGE_MANAGED);
    // It waits for the default stream's own copies anyway.
    const struct clock *clock = slot < 0 ? &j->known : order_clock(j->order, slot);
    const struct use *other =
        waits ? NULL
              : history_beyond(&a->history, a->start, a->end, true, clock,
                               slot < 0 ? not_of_default_stream : NULL, j, &its_write);
    if (other && !a->of_graph)
        report_host(j,
                    a->kind == JUDGE_PEER     ? "closes"
                    : a->kind == JUDGE_HANDLE ? NULL
                                              : "frees",
                    at, other, clock, slot >= 0);
    const struct lent *lent = lent_part(uses, a->start, a->end, true);
    // What the host registered is the host's again, not gone.
    if (lent && slot < 0 && a->kind != JUDGE_HOST_REGISTERED)
        lent_report(j, a, at.call, "frees", at, lent);
    if (a->kind != JUDGE_HOST_REGISTERED)
        uses->freed[uses->nfreed++ % REMEMBERED] =
            (struct freed){a->start, a->end, a->kind, a->made, at};
    allocation_take_out(uses, i - 1);
}

static void report_device_memory(struct judge *j, const struct allocation *a,
                                 struct judge_at at) {
    struct finding f = finding(FINDING_memory_host_call, at.site, 0);
    f.hint = j->options.kernels ? HINT_OF_FINDING : HINT_host_call_cpu;
    set_here(j, &f, at);
    set_allocation(j, &f, a);
    say(j, &f);
}

bool judge_host_uses(struct judge *j, const void *start, size_t bytes, bool write,
                     bool device_too, struct judge_at at) {
    struct uses *uses = j->uses;
    uint64_t from = address_of(start), to = from + bytes;
    bool wrong = false;
    for (size_t i = bytes ? allocation_position(uses, to - 1) : 0; i-- > 0 && !wrong;) {
        struct allocation *a = uses->table[i];
        if (a->end <= from)
            break;
        if (write && device_too)
            a->written = true;
        bool its_write;
        const struct use *use = unseen_use(j, a, from, to, write, &its_write);
        if (allocation_on_gpu(a) && !device_too) {
            wrong = true;
            report_device_memory(j, a, at);
        } else if (use) {
            wrong = report_host(j, does(write), at, use, &j->known, false);
        }
    }
    return wrong;
}

/* A touch of an address that is, or was (`gone`), no memory of the host's. */
static void report_no_memory(struct judge *j, const struct allocation *a,
                             const struct freed *gone, uint64_t address, const char *verb,
                             uint64_t site) {
    struct finding f =
        finding(gone ? FINDING_memory_host_freed : FINDING_memory_host_touch, 0, 0);
    uint64_t start = gone ? gone->start : a->start;
    set(&f, "does", "%s", verb);
    set_place(j, &f, "at", site);
    set(&f, "byte", "%llu", (unsigned long long)(address - start));
    if (gone)
        set_freed(j, &f, gone);
    else
        set_allocation(j, &f, a);
    say(j, &f);
}

static bool report_touch(struct judge *j, const struct allocation *a, uint64_t byte,
                         const struct use *use, bool its_write, const char *verb,
                         uint64_t site) {
    bool in_stream = j->thread->function;
    struct finding f = finding(FINDING_race_touch, site, use->at.site);
    f.hint = in_stream ? HINT_between_streams : HINT_OF_FINDING;
    if (round_trip_possible(j, use->slot, use->seq, &j->known))
        return false;
    set(&f, "who", "%s", in_stream ? "a function of cudaLaunchHostFunc" : "the host");
    set(&f, "does", "%s", verb);
    set_place(j, &f, "at", site);
    set(&f, "byte", "%llu", (unsigned long long)byte);
    set_allocation(j, &f, a);
    set_queued(j, &f, use);
    set(&f, "other_does", "%s", does(its_write));
    set_failures(j, &f);
    say(j, &f);
    return j->options.mode == JUDGE_ON;
}

bool judge_host_faults(struct judge *j, const void *pointer, bool write, bool write_known,
                       uint64_t site) {
    struct uses *uses = j->uses;
    uint64_t at = address_of(pointer);
    const struct allocation *a = allocation_find(uses, at);
    const struct freed *gone = a ? NULL : allocation_freed(uses, at);
    const char *verb = !write_known ? "touches" : write ? "writes to" : "reads";
    if (j->options.mode == JUDGE_OFF || (!a && !gone))
        return false;
    if (gone || allocation_on_gpu(a)) {
        report_no_memory(j, a, gone, at, verb, site);
        return true;
    }
    bool its_write;
    const struct use *use =
        unseen_use(j, a, at, at + 1, write || !write_known, &its_write);
    // NULL: a neighbour on the same page
    return use && report_touch(j, a, at - a->start, use, its_write, verb, site);
}

bool judge_host_is_early(struct judge *j, const void *at, bool write) {
    const struct allocation *a = allocation_find(j->uses, address_of(at));
    bool its_write;
    return a && j->options.mode != JUDGE_OFF &&
           unseen_use(j, a, address_of(at), address_of(at) + 1, write, &its_write);
}

struct telling {
    struct judge *j;
    void (*each)(void *self, const void *start, size_t bytes, bool write);
    void *self;
};

static void tell_one(void *self, const struct use *use, uint64_t from, uint64_t to,
                     bool write) {
    struct telling *telling = self;
    if (may_have_begun(use, telling->j) && !lent_part(telling->j->uses, from, to, write))
        telling->each(telling->self, (const void *)(uintptr_t)from, (size_t)(to - from),
                      write);
}

void judge_memory_in_use(struct judge *j, const void *start,
                         void (*each)(void *self, const void *start, size_t bytes,
                                      bool write),
                         void *self) {
    const struct allocation *a = allocation_find(j->uses, address_of(start));
    struct telling telling = {j, each, self};
    if (a)
        history_each(&a->history, &j->known, tell_one, &telling);
}

void uses_graph_gone(struct judge *j, const void *start, const struct use *use,
                     struct judge_at launch) {
    const struct freed *freed = allocation_freed(j->uses, address_of(start));
    struct finding f = finding(FINDING_memory_graph, launch.site, use->at.site);
    set_at(j, &f, "here", launch);
    set_use(j, &f, "captured", use);
    if (freed)
        set_freed(j, &f, freed);
    say(j, &f);
}

void judge_memory_overrun(struct judge *j, const void *start, size_t behind,
                          struct judge_at at) {
    struct judge_memory memory;
    if (!judge_memory_find(j, start, &memory))
        return;
    struct finding f = finding(FINDING_memory_overrun, memory.made.site, 0);
    set_at(j, &f, "here", at);
    set(&f, "bytes", "%zu", memory.bytes);
    set_at(j, &f, "made", memory.made);
    set(&f, "byte", "%zu", memory.bytes + behind - 1);
    set(&f, "last", "%zu", memory.bytes - 1);
    say(j, &f);
}
