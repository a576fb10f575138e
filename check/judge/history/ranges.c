/*
 * ranges.c: what an operation reads and writes, by itself: past the end of its buffer,
 * freed, on another device.
 *
 * CUDA Runtime API, "Memory Management", "Peer Device Memory Access".
 */
#include "history/allocations.h"
#include "ranks/comms.h"

void set_freed(struct judge *j, struct finding *f, const struct freed *freed) {
    set(f, "bytes", "%llu", (unsigned long long)(freed->end - freed->start));
    set(f, "kind", "%s", kind_name(freed->kind));
    set_place(j, f, "made", freed->made.site);
    set_place(j, f, "freed", freed->freed.site);
}

void memory_report_freed(struct judge *j, const char *what, const char *words,
                         struct judge_at at, const struct freed *freed) {
    struct finding f = finding(freed->kind == JUDGE_HANDLE ? FINDING_memory_handle
                                                           : FINDING_memory_freed,
                               at.site, 0);
    set(&f, "what", "%s", what);
    set(&f, "call", "%s", at.call);
    set_words_at(j, &f, "here", words, at.site);
    set_freed(j, &f, freed);
    say(j, &f);
}

/* How many blocks of `count` elements a buffer of `bytes` takes. */
static size_t blocks_of(const struct judge_call *call, size_t bytes) {
    size_t block = call ? call_bytes(call) : 0;
    return block ? bytes / block : 1;
}

/* Whether the count is what one rank brings or gets, and one of the buffers is that of
 * all. */
static bool counts_one_rank(int kind) {
    enum blocks sends = kind_of(kind)->send, gets = kind_of(kind)->recv;
    return sends == ALL_BLOCKS || sends == ROOTS_ALL || gets == ALL_BLOCKS ||
           gets == ROOTS_ALL;
}

/* What made it too long? Only what the numbers say. */
static void hint_at_range(struct finding *f, const struct judge_call *call,
                          const struct comm_facts *comm, size_t bytes, size_t from,
                          size_t size) {
    size_t blocks = blocks_of(call, bytes), block = bytes / blocks, room = size - from;
    size_t ranks = comm && counts_one_rank(call->kind) ? (size_t)comm->nranks : 1;
    bool elements = call && call->type_bytes > 1 && bytes == room * call->type_bytes;
    if (from > 0 && bytes <= size && !elements) {
        f->hint = HINT_range_from;
    } else if (ranks > 1 && bytes == room * ranks) {
        f->hint = elements     ? HINT_range_ranks_or_bytes
                  : blocks > 1 ? HINT_range_each_rank
                               : HINT_range_all_ranks;
    } else if (elements) {
        f->hint = HINT_range_elements;
    } else if (blocks > 1 && room > block && room % block == 0) {
        f->hint = HINT_range_fewer_ranks;
        ranks = blocks;
    } else if (!call && from == 0 && (bytes == 4 * size || bytes == 8 * size)) {
        f->hint = HINT_range_made_in_elements;
    }
    set(f, "ranks", "%zu", ranks);
    set(f, "element", "%zu", call ? call->type_bytes : 0);
    set(f, "fit", "%zu", room / block);
    set(f, "comm", "%d", comm ? comm->number : 0);
    set(f, "times", "%zu", bytes / size);
    set(f, "room", "%zu", room);
    set(f, "missing", "%zu", bytes - room);
}

bool memory_too_long(struct judge *j, const struct allocation *a, uint64_t start,
                     size_t bytes, const char *which, const char *words,
                     const struct judge_call *call, struct judge_at at) {
    // What the host registered may go on after it; what another process made, too.
    if (bytes <= a->end - start || a->kind == JUDGE_PEER ||
        (!call && a->kind == JUDGE_HOST_REGISTERED))
        return false;
    const struct comm_facts *comm = call ? calls_comm(j, call->comm) : NULL;
    struct finding f = finding(FINDING_memory_range, at.site, 0);
    set(&f, "words", "%s", words);
    set_words_at(j, &f, "here", words, at.site);
    set(&f, "used", "%zu", bytes);
    set(&f, "from", "%llu", (unsigned long long)(start - a->start));
    set_allocation(j, &f, a);
    if (comm && blocks_of(call, bytes) > 1)
        set(&f, "takes",
            "%s takes %zu element%s of %zu byte%s for each of the %d ranks of "
            "communicator"
            " %d",
            which, call->count, call->count == 1 ? "" : "s", call->type_bytes,
            call->type_bytes == 1 ? "" : "s", comm->nranks, comm->number);
    else if (comm)
        set(&f, "takes",
            "%s takes %zu element%s of %zu byte%s; communicator %d has %d rank%s", which,
            call->count, call->count == 1 ? "" : "s", call->type_bytes,
            call->type_bytes == 1 ? "" : "s", comm->number, comm->nranks,
            comm->nranks == 1 ? "" : "s");
    hint_at_range(&f, call, comm, bytes, (size_t)(start - a->start),
                  (size_t)(a->end - a->start));
    say(j, &f);
    return true;
}

static bool one_range(struct judge *j, const struct judge_range *range,
                      enum judge_op_kind kind, struct judge_at at) {
    uint64_t start = address_of(range->start);
    const struct allocation *a = allocation_find(j->uses, start);
    if (a)
        return memory_too_long(j, a, start, range->bytes, "", at.call, NULL, at);
    // Where a copy may mean the host's memory, malloc may have given the address out
    // again.
    const struct freed *freed = allocation_freed(j->uses, start);
    if (!freed && kind == JUDGE_COMPUTES && !j->options.kernels) {
        struct finding f = finding(FINDING_memory_no_gpu_memory, at.site, 0);
        f.hint = HINT_wants_device_memory;
        set(&f, "what", "a buffer");
        set_here(j, &f, at);
        say(j, &f);
        return true;
    }
    bool copies = kind == JUDGE_COPY || kind == JUDGE_COPY_ROWS;
    bool was_gpus =
        freed && (judge_on_device(freed->kind) || freed->kind == JUDGE_HANDLE);
    if (!was_gpus || (copies && !range->device))
        return false;
    memory_report_freed(j, "a buffer", at.call, at, freed);
    return true;
}

void judge_registers(struct judge *j, const void *start, size_t bytes,
                     struct judge_at at) {
    const struct judge_range range = {.start = start, .bytes = bytes, .device = true};
    one_range(j, &range, JUDGE_PUTS, at);
}

uint64_t uses_source(const struct judge_range *ranges, int n, enum judge_op_kind kind) {
    if (kind != JUDGE_COPY || n != 2 || ranges[0].write == ranges[1].write)
        return 0;
    return address_of(ranges[ranges[0].write].start);
}

bool uses_check(struct judge *j, const struct judge_range *ranges, int n,
                enum judge_op_kind kind, bool captured, struct judge_at at) {
    bool wrong = false;
    for (int i = 0; i < n && !wrong; i++)
        wrong = ranges[i].bytes > 0 && one_range(j, &ranges[i], kind, at);
    return wrong || (!captured && fresh_copied(j, ranges, n, kind, at));
}

static size_t access_of(const struct uses *uses, int device, int peer) {
    size_t i = 0;
    while (i < uses->naccess &&
           (uses->access[i].device != device || uses->access[i].peer != peer))
        i++;
    return i;
}

void judge_peer_access(struct judge *j, int device, int peer, bool on) {
    struct uses *uses = j->uses;
    size_t i = access_of(uses, device, peer);
    if (on && i == uses->naccess) {
        ROOM(uses->access, uses->naccess, &uses->access_size);
        uses->access[uses->naccess++] = (struct access){device, peer};
    } else if (!on && i < uses->naccess) {
        uses->access[i] = uses->access[--uses->naccess];
    }
}

/* CUDA Runtime API, "Peer Device Memory Access". A copy needs no access. On GPUs others
 * may have asked for it, unseen: NCCL does for its own use. Memory of ncclMemAlloc is
 * everybody's, that of a pool as its owner says. */
bool uses_out_of_reach(struct judge *j, const struct judge_range *ranges, int n,
                       enum judge_op_kind kind, int device, struct judge_at at) {
    for (int i = 0; i < n && !j->options.kernels && kind == JUDGE_COMPUTES; i++) {
        const struct allocation *a =
            allocation_find(j->uses, address_of(ranges[i].start));
        if (!a || a->kind != JUDGE_DEVICE || a->device == device ||
            access_of(j->uses, device, a->device) < j->uses->naccess)
            continue;
        struct finding f = finding(FINDING_memory_no_access, at.site, 0);
        set_here(j, &f, at);
        set(&f, "does", "%s", does(ranges[i].write));
        set(&f, "device", "%d", device);
        set_allocation(j, &f, a);
        say(j, &f);
        return true;
    }
    return false;
}

bool judge_put(struct judge *j, const struct judge_signal *signal) {
    const struct judge_put *put = signal->put;
    if (put->room == 0 ||
        (put->bytes <= put->room && put->from <= put->room - put->bytes))
        return false;
    struct finding f = finding(FINDING_memory_window, signal->at.site, 0);
    set_here(j, &f, signal->at);
    set(&f, "bytes", "%zu", put->bytes);
    set(&f, "from", "%zu", put->from);
    set(&f, "room", "%zu", put->room);
    set_at(j, &f, "registered", put->registered);
    say(j, &f);
    return true;
}
