/*
 * unwritten.c: memory of which nobody has ever written a byte, and what came of it.
 */
#include "history/allocations.h"
#include "ranks/calls.h"

/* What a call of NCCL, or an operation, left in an allocation of a buffer that nothing
 * had written. */
struct fresh {
    uint64_t from, to;
    struct judge_call call;
    struct judge_at op;   // or an operation; call NULL: it was a call of NCCL
    uint64_t site;        // of what left it here
    struct allocation of; // no more of it than add_buffer takes
};

static bool never_written(const struct allocation *a) {
    return judge_on_device(a->kind) && !a->open && !a->of_graph && !a->written;
}

/* Of what nothing has written nothing comes. */
void fresh_written(const struct uses *uses, struct allocation *a, uint64_t source) {
    const struct allocation *from = source ? allocation_find(uses, source) : NULL;
    a->written |= !from || !never_written(from);
}

/* The allocation that it reads, or writes; NULL: not, or in none. */
static struct allocation *part_of(struct judge *j, const struct judge_range *range,
                                  bool write) {
    return range->write == write && range->bytes
               ? allocation_find(j->uses, address_of(range->start))
               : NULL;
}

/* A copy that the host can look at. */
static bool to_host(struct judge *j, const struct judge_range *ranges, int n,
                    enum judge_op_kind kind) {
    if (j->options.kernels || j->uses->kernels ||
        (kind != JUDGE_COPY && kind != JUDGE_COPY_ROWS))
        return false;
    for (int i = 0; i < n; i++) {
        const struct allocation *a = part_of(j, &ranges[i], true);
        if (a && a->kind != JUDGE_PINNED && a->kind != JUDGE_HOST_REGISTERED)
            return false;
    }
    return true;
}

static void report_fresh(struct judge *j, const struct fresh *fresh) {
    const struct judge_call *call = &fresh->call;
    struct finding f =
        finding(fresh->op.call ? FINDING_memory_unwritten_read : FINDING_memory_unwritten,
                fresh->op.call ? fresh->op.site : call->at.site, 0);
    if (fresh->op.call) {
        set_here(j, &f, fresh->op);
    } else {
        set(&f, "what", "sendbuff of %s", call->at.call);
        set_words_at(j, &f, "here", call_words(call), call->at.site);
    }
    set_allocation(j, &f, &fresh->of);
    set_failures(j, &f);
    say(j, &f);
}

/* What came of a buffer that nobody had written. */
static bool copies_fresh(struct judge *j, const struct judge_range *ranges, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t start = address_of(ranges[i].start), end = start + ranges[i].bytes;
        const struct allocation *a = part_of(j, &ranges[i], false);
        const struct fresh *fresh = a && !a->open ? a->fresh : NULL;
        if (!fresh || fresh->to <= start || end <= fresh->from)
            continue;
        report_fresh(j, fresh);
        return true;
    }
    return false;
}

static void leaves_fresh(struct allocation *a, uint64_t from, uint64_t to,
                         struct fresh fresh, uint64_t site) {
    fresh.from = from;
    fresh.to = to;
    fresh.site = site;
    if (!a->fresh)
        a->fresh = must_alloc(sizeof *a->fresh);
    *a->fresh = fresh;
}

/* This is written anew. */
void fresh_forget(struct allocation *a, uint64_t from, uint64_t to) {
    if (!a->fresh || a->fresh->to <= from || to <= a->fresh->from)
        return;
    free(a->fresh);
    a->fresh = NULL;
}

void judge_memory_written(struct judge *j, const void *address) {
    struct allocation *a = allocation_find(j->uses, address_of(address));
    if (!a)
        return;
    a->written = true;
    fresh_forget(a, a->start, a->end);
}

static struct fresh fresh_of(const struct allocation *a) {
    return (struct fresh){
        .of = {.start = a->start, .end = a->end, .kind = a->kind, .made = a->made}};
}

uint64_t uses_nothing(struct judge *j, const struct judge_range *ranges, int n,
                      struct judge_at at) {
    const struct allocation *found = NULL;
    if (j->options.kernels || j->uses->kernels)
        return 0;
    for (int i = 0; i < n && !found; i++) {
        const struct allocation *a = part_of(j, &ranges[i], false);
        if (a && never_written(a))
            found = a;
    }
    for (int i = 0; i < n; i++) {
        uint64_t start = address_of(ranges[i].start), end = start + ranges[i].bytes;
        struct allocation *a = part_of(j, &ranges[i], true);
        if (!a || !judge_on_device(a->kind))
            continue;
        fresh_forget(a, start, end);
        if (!found)
            continue;
        struct fresh fresh = fresh_of(found);
        fresh.op = at;
        leaves_fresh(a, start, end, fresh, at.site);
    }
    return found ? found->start : 0;
}

/* Of which nobody ever wrote a byte. It may be right: there to be timed, or on the ranks
 * that do not look at what a root gathers. The first is noted, for the end. */
static void copies_nothing(struct judge *j, const struct judge_range *ranges, int n,
                           struct judge_at at) {
    const struct allocation *from = NULL;
    if (j->uses->copies_nothing.call)
        return;
    for (int i = 0; i < n; i++) {
        if (ranges[i].write || ranges[i].bytes == 0)
            continue;
        const struct allocation *a = part_of(j, &ranges[i], false);
        // A program that copies what this rank's call has left alone may know that.
        if (!a || from || a->left_alone.call || !never_written(a))
            return;
        from = a;
    }
    if (!from)
        return;
    j->uses->copies_nothing = at;
    j->uses->nothing_made = from->made;
}

bool fresh_copied(struct judge *j, const struct judge_range *ranges, int n,
                  enum judge_op_kind kind, struct judge_at at) {
    if (!to_host(j, ranges, n, kind))
        return false;
    copies_nothing(j, ranges, n, at);
    return copies_fresh(j, ranges, n);
}

bool fresh_left_by(const struct allocation *a, uint64_t site) {
    return a->fresh && a->fresh->site == site;
}

void judge_unwritten(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    const struct judge_at *at = &j->uses->copies_nothing, *made = &j->uses->nothing_made;
    if (at->call)
        text_add(&text, "%s at %s, of what %s made at %s", at->call, place(j, at->site),
                 made->call, place(j, made->site));
    text_out(&text, out, bytes);
}

void judge_aborts(struct judge *j) {
    char unwritten[2 * JUDGE_PLACE];
    struct finding f = finding(FINDING_note_abort, 0, 0);
    judge_unwritten(j, unwritten, sizeof unwritten);
    if (!unwritten[0])
        return;
    set(&f, "copied", "%s", unwritten);
    say(j, &f);
}

/* What is sent or added up is memory of which nobody ever wrote a byte. That alone is no
 * mistake (an all-reduce may be there to time it, or for a barrier; the NCCL User Guide's
 * Example 2 makes one): it is if the host looks at what comes of it, on this rank. */
void fresh_sent(struct judge *j, const struct judge_call *call,
                const struct stream *stream) {
    if (j->options.kernels || j->uses->kernels || (stream && stream->capture))
        return;
    uint64_t out = call_recv_bytes(j, call), to = address_of(call->recvbuff);
    const struct allocation *a =
        call_send_bytes(j, call) ? allocation_find(j->uses, address_of(call->sendbuff))
                                 : NULL;
    struct allocation *b = out ? allocation_find(j->uses, to) : NULL;
    if (!a || !b || !judge_on_device(b->kind))
        return;
    fresh_forget(b, to, to + out);
    if (!never_written(a))
        return;
    struct fresh fresh = fresh_of(a);
    fresh.call = *call;
    leaves_fresh(b, to, to + out, fresh, call->at.site);
}

void fresh_not_sent(struct judge *j, const struct judge_call *call) {
    struct allocation *b = allocation_find(j->uses, address_of(call->recvbuff));
    if (b && fresh_left_by(b, call->at.site))
        fresh_forget(b, b->start, b->end);
}
