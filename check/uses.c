/*
 * uses.c: memory, and who uses it: races, ranges, freed, left behind.
 *
 * NCCL User Guide, "Data Pointers", "In-place Operations", "Group Calls"; CUDA Runtime
 * API, "Memory Management", "Stream Ordered Memory Allocator".
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

enum { REMEMBERED = 1024 }; // freed allocations, to name a use after free
enum { FAR = 16 }; // times a buffer's size: what lies further behind it is no slip

struct allocation {
    uint64_t start, end, serial;
    enum judge_memory_kind kind;
    int device;
    struct judge_at made;
    struct history history;
    bool of_graph;
    bool written;    // a byte of it, ever
    bool open;       // something that the judge does not see may write it
    uint64_t shared; // its number in all processes that use it; 0: only this one does
    double opened;   // another's, by this process
    struct judge_at left_alone; // given to this call, which fills it on another rank
    struct fresh *fresh;        // NULL: nothing
};

/* What a call of NCCL, or an operation, left in an allocation of a buffer that nothing
 * had written. Or what a call left that was aborted. */
struct fresh {
    uint64_t from, to;
    bool scalar; // it is what a reduction multiplies by that nothing had written
    struct judge_call call;
    struct judge_at op;      // or an operation; call NULL: it was a call of NCCL
    uint64_t site;           // of what left it here
    struct judge_at aborted; // call NULL: it was not
    struct allocation of;    // no more of it than add_buffer takes
};

struct freed {
    uint64_t start, end;
    enum judge_memory_kind kind;
    struct judge_at made, freed;
};

struct lent {          // to MPI
    uint64_t from, to; // 0, 0: it is back
    bool write;
    struct judge_at at;
};

struct uses {
    struct lent *lent;
    size_t nlent, lent_size; // nlent: numbers given out
    size_t lent_free;        // below it, none is free
    struct late { // an operation that may wait until MPI is done with its buffer
        struct use *use;
        uint64_t at;
        bool write;
        int lent;
    } * late;
    size_t nlate, late_size;
    struct allocation **table; // sorted by address
    size_t n, size;
    struct freed freed[REMEMBERED];
    size_t nfreed;
    uint64_t serial;
    size_t forget_at; // so many parts in histories: look what can be forgotten
    bool kernels;     // one was launched
    struct access {   // kernels of `device` may use memory of `peer`
        int device, peer;
    } * access;
    size_t naccess, access_size;
    struct judge_at copies_nothing, nothing_made; // the first such copy, and its source
};

struct uses *uses_new(void) {
    return must_alloc(sizeof(struct uses));
}

static void allocation_free(struct allocation *a) {
    history_free(&a->history);
    free(a->fresh);
    free(a);
}

static void late_drop(struct uses *uses, size_t i) {
    use_drop(uses->late[i].use);
    uses->late[i] = uses->late[--uses->nlate];
}

void uses_free(struct uses *uses) {
    for (size_t i = 0; i < uses->n; i++)
        allocation_free(uses->table[i]);
    while (uses->nlate > 0)
        late_drop(uses, 0);
    free(uses->late);
    free(uses->lent);
    free(uses->access);
    free(uses->table);
    free(uses);
}

static uint64_t address(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static const char *kind_name(enum judge_memory_kind kind) {
    return kind == JUDGE_DEVICE    ? "device"
           : kind == JUDGE_PINNED  ? "pinned"
           : kind == JUDGE_MANAGED ? "managed"
                                   : "another process's";
}

/* The host has no address for it. */
static bool on_gpu(const struct allocation *a) {
    return a->kind == JUDGE_DEVICE || a->kind == JUDGE_PEER;
}

/* --- Allocations ------------------------------------------------------------------ */

/* Of the first allocation that starts behind `at`. */
static size_t position_of(const struct uses *uses, uint64_t at) {
    size_t low = 0, high = uses->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (uses->table[middle]->start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct allocation *find(const struct uses *uses, uint64_t at) {
    size_t i = position_of(uses, at);
    return i > 0 && at < uses->table[i - 1]->end ? uses->table[i - 1] : NULL;
}

static const struct freed *find_freed(const struct uses *uses, uint64_t at) {
    size_t n = uses->nfreed < REMEMBERED ? uses->nfreed : REMEMBERED;
    for (size_t i = 1; i <= n; i++) { // the newest first
        const struct freed *f = &uses->freed[(uses->nfreed - i) % REMEMBERED];
        if (at >= f->start && at < f->end)
            return f;
    }
    return NULL;
}

static void take_out(struct uses *uses, size_t i) {
    allocation_free(uses->table[i]);
    memmove(uses->table + i, uses->table + i + 1,
            (--uses->n - i) * sizeof(struct allocation *));
}

struct allocation *uses_made(struct judge *j, const void *start, size_t bytes,
                             enum judge_memory_kind kind, int device,
                             struct judge_at at) {
    struct uses *uses = j->uses;
    uint64_t from = address(start), to = from + (bytes ? bytes : 1);
    // What lay there before is gone, in a way that nobody told.
    for (size_t i = position_of(uses, to - 1);
         i-- > 0 && uses->table[i]->start < to && uses->table[i]->end > from;)
        take_out(uses, i);
    for (size_t i = 0; i < REMEMBERED; i++)
        if (uses->freed[i].start < to && uses->freed[i].end > from)
            uses->freed[i].start = uses->freed[i].end = 0;
    struct allocation *a = must_alloc(sizeof *a);
    a->start = from;
    a->end = to;
    a->serial = ++uses->serial;
    a->kind = kind;
    a->device = device;
    a->made = at;
    ROOM(uses->table, uses->n, &uses->size);
    size_t i = position_of(uses, from);
    memmove(uses->table + i + 1, uses->table + i, (uses->n++ - i) * sizeof a);
    uses->table[i] = a;
    return a;
}

void uses_of_graph(struct allocation *a) {
    a->of_graph = true;
}

uint64_t uses_serial(struct judge *j, const void *at) {
    const struct allocation *a = find(j->uses, address(at));
    return a ? a->serial : 0;
}

bool uses_find(struct judge *j, const void *at, struct judge_memory *out) {
    const struct allocation *a = find(j->uses, address(at));
    if (a)
        *out = (struct judge_memory){(const void *)(uintptr_t)a->start,
                                     (size_t)(a->end - a->start), a->kind, a->device,
                                     a->made};
    return a != NULL;
}

void uses_open(struct judge *j, const void *at) {
    struct allocation *a = find(j->uses, address(at));
    if (a)
        a->open = true;
}

static struct shared_part shared_part(const struct allocation *a, uint64_t from,
                                      uint64_t to, bool write) {
    return (struct shared_part){.memory = a->shared,
                                .from = from - a->start,
                                .to = to - a->start,
                                .bytes = a->end - a->start,
                                .made = a->made.site,
                                .own = a->kind != JUDGE_PEER,
                                .opened = a->opened,
                                .write = write};
}

void uses_shared(struct judge *j, const void *at, uint64_t id) {
    struct allocation *a = find(j->uses, address(at));
    if (!a)
        return;
    a->shared = id;
    a->opened = a->kind == JUDGE_PEER ? now(j) : 0;
}

void uses_kernel(struct judge *j) {
    j->uses->kernels = true;
}

/* --- Written, ever ---------------------------------------------------------------- */

static bool never_written(const struct allocation *a) {
    return a->kind == JUDGE_DEVICE && !a->open && !a->of_graph && !a->written;
}

/* Of what nothing has written nothing comes. */
static void mark_written(const struct uses *uses, struct allocation *a, uint64_t source) {
    const struct allocation *from = source ? find(uses, source) : NULL;
    a->written |= !from || !never_written(from);
}

/* --- Words ------------------------------------------------------------------------ */

static const char *does(bool write) {
    return write ? "writes" : "reads";
}

static const char *use_words(char out[JUDGE_PLACE], const struct use *use) {
    return use->is_call ? call_words(out, &use->call) : use->at.call;
}

static void add_here(struct judge *j, struct text *text) {
    text_add(text, "  rank %d on %s: ", j->rank, j->host);
}

static void add_queued(struct judge *j, struct text *text, const struct use *use) {
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    text_add(text, "  queued: %s at %s", use_words(words, use),
             place(j, use->at.site, where));
    const struct comm_facts *comm = use->is_call ? calls_comm(j, use->call.comm) : NULL;
    if (comm)
        text_add(text, ", operation %llu on communicator %d",
                 (unsigned long long)use->index, comm->number);
}

static void add_buffer(struct judge *j, struct text *text, const struct allocation *a) {
    char where[JUDGE_PLACE];
    text_add(text, "  the buffer: %llu bytes of %s memory made at %s\n",
             (unsigned long long)(a->end - a->start), kind_name(a->kind),
             place(j, a->made.site, where));
}

/* An error that nobody asked about is often why there is no order. */
static void add_failures_line(struct judge *j, struct text *text) {
    size_t used = text->used;
    text_add(text, "  ");
    add_unlooked(j, text);
    if (text->used == used + 2)
        text->at[text->used = used] = '\0';
    else
        text_add(text, "\n");
}

static bool starts(const char *call, const char *with) {
    return call && strncmp(call, with, strlen(with)) == 0;
}

static uint64_t pair_of(uint64_t site, uint64_t other) {
    return site < other ? mixed(site, other) : mixed(other, site);
}

/* --- Ranges ----------------------------------------------------------------------- */

static void report_freed(struct judge *j, const char *what, const char *words,
                         struct judge_at at, const struct freed *freed) {
    char where[JUDGE_PLACE], made[JUDGE_PLACE], end[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "memory: %s of %s was freed before\n", what, at.call);
    add_here(j, &text);
    text_add(&text,
             "%s at %s\n"
             "  the buffer: %llu bytes of %s memory made at %s, freed at %s\n"
             "  Hint: a GPU stops here with an illegal memory access, or uses what lies"
             " there now.\n",
             words, place(j, at.site, where),
             (unsigned long long)(freed->end - freed->start), kind_name(freed->kind),
             place(j, freed->made.site, made), place(j, freed->freed.site, end));
    report(j, &text, true, mixed(at.site, 1));
}

/* How many blocks of `count` elements a buffer of `bytes` takes. */
static size_t blocks_of(const struct judge_call *call, size_t bytes) {
    size_t block = call ? call_bytes(call) : 0;
    return block ? bytes / block : 1;
}

/* Whether the count is what one rank brings or gets, and one of the buffers is that of
 * all. */
static bool counts_one_rank(enum judge_kind kind) {
    return kind == JUDGE_ALL_GATHER || kind == JUDGE_REDUCE_SCATTER ||
           kind == JUDGE_ALL_TO_ALL || kind == JUDGE_GATHER || kind == JUDGE_SCATTER;
}

/* What made it too long? Only what the numbers say. */
static void add_range_hint(struct text *text, const struct judge_call *call,
                           const struct comm_facts *comm, size_t bytes, size_t from,
                           size_t size, const char *made) {
    size_t blocks = blocks_of(call, bytes), block = bytes / blocks, room = size - from;
    size_t ranks = comm && counts_one_rank(call->kind) ? (size_t)comm->nranks : 1;
    bool elements = call && call->type_bytes > 1 && bytes == room * call->type_bytes;
    if (from > 0 && bytes <= size && !elements)
        text_add(text,
                 "  Hint: the buffer is long enough from its start, not from byte %zu: is"
                 " only a part of it\n"
                 "        meant, or another place?\n",
                 from);
    else if (ranks > 1 && bytes == room * ranks && elements)
        text_add(
            text,
            "  Hint: the count is that of one rank, and of elements: %zu times too much"
            " is either for\n"
            "        all %zu ranks, or in bytes.\n",
            ranks, ranks);
    else if (ranks > 1 && bytes == room * ranks && blocks > 1)
        text_add(text,
                 "  Hint: the count is that of one rank; this buffer takes as much for"
                 " each of the %zu ranks.\n",
                 ranks);
    else if (ranks > 1 && bytes == room * ranks)
        text_add(text,
                 "  Hint: the count is that of one rank; here it is %zu times what the"
                 " buffer has: that of\n"
                 "        all %zu ranks?\n",
                 ranks, ranks);
    else if (elements)
        text_add(text,
                 "  Hint: NCCL counts elements (here of %zu bytes), cudaMalloc counts"
                 " bytes.\n",
                 call->type_bytes);
    else if (blocks > 1 && room > block && room % block == 0)
        text_add(text,
                 "  Hint: there is room for %zu ranks, and communicator %d has %zu.\n",
                 room / block, comm ? comm->number : 0, blocks);
    else if (!call && from == 0 && (bytes == 4 * size || bytes == 8 * size))
        text_add(text,
                 "  Hint: %s counts bytes: the buffer has one byte where %zu are"
                 " used. Was it given\n"
                 "        a number of elements?\n",
                 made, bytes / size);
    else
        text_add(text, "  Hint: %zu bytes are there, %zu are missing.\n", room,
                 bytes - room);
    text_add(text, "        A GPU overwrites what lies behind, or stops with an illegal"
                   " memory access.\n");
}

/* True if the range is past the end of its allocation; reported. */
static bool too_long(struct judge *j, const struct allocation *a, uint64_t start,
                     size_t bytes, const char *which, const char *words,
                     const struct judge_call *call, struct judge_at at) {
    // What the host registered may go on behind; what another process made, too.
    if (bytes <= a->end - start || a->kind == JUDGE_PEER ||
        (!call && starts(a->made.call, "cudaHostRegister")))
        return false;
    char where[JUDGE_PLACE], made[JUDGE_PLACE];
    const struct comm_facts *comm = call ? calls_comm(j, call->comm) : NULL;
    struct text text = {0};
    text_add(&text, "memory: %s runs past the end of its buffer\n", words);
    add_here(j, &text);
    text_add(&text,
             "%s at %s, %zu bytes from byte %llu of a buffer of %llu bytes\n"
             "  the buffer: %s memory made at %s\n",
             words, place(j, at.site, where), bytes,
             (unsigned long long)(start - a->start),
             (unsigned long long)(a->end - a->start), kind_name(a->kind),
             place(j, a->made.site, made));
    if (comm) {
        text_add(&text, "  %s takes %zu element%s of %zu byte%s", which, call->count,
                 call->count == 1 ? "" : "s", call->type_bytes,
                 call->type_bytes == 1 ? "" : "s");
        if (blocks_of(call, bytes) > 1)
            text_add(&text, " for each of the %d ranks of communicator %d\n",
                     comm->nranks, comm->number);
        else
            text_add(&text, "; communicator %d has %d rank%s\n", comm->number,
                     comm->nranks, comm->nranks == 1 ? "" : "s");
    }
    add_range_hint(&text, call, comm, bytes, (size_t)(start - a->start),
                   (size_t)(a->end - a->start), a->made.call);
    report(j, &text, true, mixed(at.site, 2));
    return true;
}

/* "The device encountered a load or store instruction on a memory address which is not
 * aligned" (CUDA Runtime API, cudaErrorMisalignedAddress): numbers of 2, 4 or 8 bytes are
 * computed with only at multiples of that. What merely moves bytes may begin anywhere.
 * Seen on an H200, where cublasSgemm refuses such an address (status 15). */
static bool misaligned(struct judge *j, const char *what, const struct judge_call *call,
                       const void *start, size_t element, struct judge_at at) {
    if (element == 0 || address(start) % element == 0)
        return false;
    char words[JUDGE_PLACE], where[JUDGE_PLACE], made[JUDGE_PLACE];
    const struct allocation *a = find(j->uses, address(start));
    struct text text = {0};
    text_add(&text, "memory: %s of %s is not aligned to its elements\n", what, at.call);
    add_here(j, &text);
    text_add(&text, "%s at %s\n", call ? call_words(words, call) : at.call,
             place(j, at.site, where));
    if (a)
        text_add(&text, "  the address: byte %llu of a buffer of %llu bytes made at %s\n",
                 (unsigned long long)(address(start) - a->start),
                 (unsigned long long)(a->end - a->start), place(j, a->made.site, made));
    text_add(
        &text,
        "  Hint: a GPU computes with numbers of %zu bytes only where the address is a"
        " multiple of %zu;\n"
        "        here it %s.\n",
        element, element,
        starts(at.call, "cublasSgemm") ? "returns CUBLAS_STATUS_NOT_SUPPORTED"
                                       : "fails with \"misaligned address\"");
    report(j, &text, true, mixed(at.site, 32));
    return true;
}

static bool one_range(struct judge *j, const struct judge_range *range,
                      struct judge_at at) {
    uint64_t start = address(range->start);
    const struct allocation *a = find(j->uses, start);
    if (a)
        return too_long(j, a, start, range->bytes, "", at.call, NULL, at) ||
               misaligned(j, "a buffer", NULL, range->start, range->element, at);
    // Where a copy may mean the host's memory, malloc may have given the address out
    // again.
    const struct freed *freed = find_freed(j->uses, start);
    if (!freed && starts(at.call, "cublas") && !j->options.kernels) {
        char where[JUDGE_PLACE];
        struct text text = {0};
        text_add(&text, "memory: a buffer of %s is not memory that a GPU can use\n",
                 at.call);
        add_here(j, &text);
        text_add(
            &text,
            "%s at %s\n"
            "  Hint: it wants addresses from cudaMalloc; a real GPU stops here with an"
            " illegal memory access.\n",
            at.call, place(j, at.site, where));
        report(j, &text, true, mixed(at.site, 10));
        return true;
    }
    if (!freed || freed->kind != JUDGE_DEVICE ||
        (starts(at.call, "cudaMemcpy") && !range->device))
        return false;
    report_freed(j, "a buffer", at.call, at, freed);
    return true;
}

uint64_t uses_source(const struct judge_range *ranges, int n, struct judge_at at) {
    static const char *const copies[] = {"cudaMemcpy", "cudaMemcpyAsync",
                                         "cudaMemcpyPeer", "cudaMemcpyPeerAsync"};
    bool copy = false;
    for (int i = 0; i < 4 && n == 2; i++)
        copy |= at.call && strcmp(at.call, copies[i]) == 0;
    if (!copy || ranges[0].write == ranges[1].write)
        return 0;
    return address(ranges[ranges[0].write].start);
}

static bool copies_overlap(struct judge *j, const struct judge_range *ranges,
                           uint64_t source, struct judge_at at) {
    if (source == 0)
        return false;
    uint64_t a = address(ranges[0].start), b = address(ranges[1].start);
    if (a == b || a + ranges[0].bytes <= b || b + ranges[1].bytes <= a)
        return false;
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "memory: source and destination of %s overlap\n", at.call);
    add_here(j, &text);
    text_add(
        &text,
        "%s at %s, %zu bytes, %llu bytes apart\n"
        "  Hint: what is copied where it was not read yet is lost: copy by way of another"
        " buffer.\n",
        at.call, place(j, at.site, where), ranges[0].bytes,
        (unsigned long long)(a < b ? b - a : a - b));
    report(j, &text, true, mixed(at.site, 3));
    return true;
}

/* A copy that the host can look at. */
static bool to_host(struct judge *j, const struct judge_range *ranges, int n,
                    struct judge_at at) {
    if (j->options.kernels || j->uses->kernels || !starts(at.call, "cudaMemcpy"))
        return false;
    for (int i = 0; i < n; i++) {
        const struct allocation *a =
            ranges[i].write ? find(j->uses, address(ranges[i].start)) : NULL;
        if (a && a->kind != JUDGE_PINNED)
            return false;
    }
    return true;
}

static void report_aborted(struct judge *j, const struct fresh *fresh,
                           struct judge_at at) {
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "memory: %s reads what an aborted call was to write\n", at.call);
    add_here(j, &text);
    text_add(&text, "%s at %s\n", at.call, place(j, at.site, where));
    text_add(&text, "  aborted: %s at %s", call_words(words, &fresh->call),
             place(j, fresh->call.at.site, where));
    text_add(&text, ", by %s at %s\n", fresh->aborted.call,
             place(j, fresh->aborted.site, where));
    add_buffer(j, &text, &fresh->of);
    text_add(&text,
             "  Hint: nothing had waited for the call, and nobody knows how far it came:"
             " wait for its stream\n"
             "        first, or take the numbers from elsewhere. Communicators that are"
             " no longer needed\n"
             "        are destroyed with ncclCommDestroy.\n");
    report(j, &text, true, pair_of(at.site, fresh->aborted.site));
}

static void report_fresh(struct judge *j, const struct fresh *fresh) {
    const struct judge_call *call = &fresh->call;
    const struct judge_at *op = fresh->op.call ? &fresh->op : NULL;
    uint64_t site = op ? op->site : call->at.site;
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    if (op)
        text_add(&text, "memory: %s reads device memory that nothing has written\n",
                 op->call);
    else
        text_add(&text, "memory: %s of %s is device memory that nothing has written\n",
                 fresh->scalar ? "the scalar" : "sendbuff", call->at.call);
    add_here(j, &text);
    text_add(&text, "%s at %s\n", op ? op->call : call_words(words, call),
             place(j, site, where));
    add_buffer(j, &text, &fresh->of);
    add_failures_line(j, &text);
    text_add(
        &text,
        "  Hint: fresh memory holds anything: fill it first (cudaMemcpy, cudaMemset)."
        " Was another\n"
        "        buffer meant, or did a copy get lost that was to write here?\n");
    report(j, &text, true, mixed(site, 9));
}

/* What came of a buffer that nobody had written, or of an aborted call. */
static bool copies_fresh(struct judge *j, const struct judge_range *ranges, int n,
                         struct judge_at at) {
    for (int i = 0; i < n; i++) {
        uint64_t start = address(ranges[i].start), end = start + ranges[i].bytes;
        const struct allocation *a =
            ranges[i].write || ranges[i].bytes == 0 ? NULL : find(j->uses, start);
        const struct fresh *fresh = a && !a->open ? a->fresh : NULL;
        if (!fresh || fresh->to <= start || end <= fresh->from)
            continue;
        if (fresh->aborted.call)
            report_aborted(j, fresh, at);
        else
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
static void forget_fresh(struct allocation *a, uint64_t from, uint64_t to) {
    if (!a->fresh || a->fresh->to <= from || to <= a->fresh->from)
        return;
    free(a->fresh);
    a->fresh = NULL;
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
        const struct allocation *a = ranges[i].write || ranges[i].bytes == 0
                                         ? NULL
                                         : find(j->uses, address(ranges[i].start));
        if (a && never_written(a))
            found = a;
    }
    for (int i = 0; i < n; i++) {
        uint64_t start = address(ranges[i].start), end = start + ranges[i].bytes;
        struct allocation *a =
            ranges[i].write && ranges[i].bytes ? find(j->uses, start) : NULL;
        if (!a || a->kind != JUDGE_DEVICE)
            continue;
        forget_fresh(a, start, end);
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
        uint64_t start = address(ranges[i].start);
        const struct allocation *a = find(j->uses, start);
        // Who copies what this rank's call has left alone may well know that.
        if (!a || from || a->left_alone.call || !never_written(a))
            return;
        from = a;
    }
    if (!from)
        return;
    j->uses->copies_nothing = at;
    j->uses->nothing_made = from->made;
}

void uses_unwritten(struct judge *j, struct text *text) {
    const struct judge_at *at = &j->uses->copies_nothing, *made = &j->uses->nothing_made;
    char where[JUDGE_PLACE], there[JUDGE_PLACE];
    if (at->call)
        text_add(text, "%s at %s, of what %s made at %s", at->call,
                 place(j, at->site, where), made->call, place(j, made->site, there));
}

bool uses_check(struct judge *j, const struct judge_range *ranges, int n, uint64_t source,
                bool captured, struct judge_at at) {
    bool wrong = copies_overlap(j, ranges, source, at);
    for (int i = 0; i < n && !wrong; i++)
        wrong = ranges[i].bytes > 0 && one_range(j, &ranges[i], at);
    if (wrong || captured || !to_host(j, ranges, n, at))
        return wrong;
    copies_nothing(j, ranges, n, at);
    return copies_fresh(j, ranges, n, at);
}

/* --- Memory of another device --------------------------------------------------------
 */

static size_t access_of(const struct uses *uses, int device, int peer) {
    size_t i = 0;
    while (i < uses->naccess &&
           (uses->access[i].device != device || uses->access[i].peer != peer))
        i++;
    return i;
}

void uses_peer_access(struct judge *j, int device, int peer, bool on) {
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
                       int device, struct judge_at at) {
    for (int i = 0; i < n && !j->options.kernels && starts(at.call, "cublas"); i++) {
        const struct allocation *a = find(j->uses, address(ranges[i].start));
        if (!a || a->kind != JUDGE_DEVICE || a->device == device ||
            strcmp(a->made.call, "cudaMalloc") != 0 ||
            access_of(j->uses, device, a->device) < j->uses->naccess)
            continue;
        char where[JUDGE_PLACE], made[JUDGE_PLACE];
        struct text text = {0};
        text_add(&text,
                 "memory: %s %s memory of a device that its own has no access to\n",
                 at.call, ranges[i].write ? "writes" : "reads");
        add_here(j, &text);
        text_add(&text,
                 "%s at %s, on a stream of device %d\n"
                 "  the buffer: %llu bytes of memory of device %d made at %s\n"
                 "  Hint: call cudaSetDevice before cudaMalloc and cublasCreate. If the"
                 " other device is meant,\n"
                 "        cudaDeviceEnablePeerAccess gives access to its memory, in one"
                 " direction.\n",
                 at.call, place(j, at.site, where), device,
                 (unsigned long long)(a->end - a->start), a->device,
                 place(j, a->made.site, made));
        report(j, &text, true, mixed(at.site, 15));
        return true;
    }
    return false;
}

/* --- A call's buffers ------------------------------------------------------------- */

static bool one_buffer(struct judge *j, const struct judge_call *call, const char *which,
                       const void *start, size_t bytes) {
    char words[JUDGE_PLACE], where[JUDGE_PLACE], made[JUDGE_PLACE];
    const struct allocation *a = find(j->uses, address(start));
    const struct freed *freed = find_freed(j->uses, address(start));
    const struct comm_facts *comm = calls_comm(j, call->comm);
    struct text text = {0};
    bool elsewhere = a && a->kind == JUDGE_DEVICE && comm && a->device != comm->device;
    if (bytes == 0 || (a && !elsewhere && bytes <= a->end - address(start)))
        return false;
    if (!start && !j->options.kernels)
        return false; // ncclInvalidArgument
    call_words(words, call);
    if (elsewhere) {
        text_add(&text, "memory: %s of %s lies on another device than the communicator\n",
                 which, call->at.call);
        add_here(j, &text);
        text_add(&text,
                 "%s at %s\n"
                 "  the buffer: %llu bytes of memory of device %d made at %s\n"
                 "  communicator %d: rank %d of %d ranks, on device %d\n"
                 "  Hint: NCCL takes memory of the communicator's own device: call "
                 "cudaSetDevice"
                 " before cudaMalloc.\n",
                 words, place(j, call->at.site, where),
                 (unsigned long long)(a->end - a->start), a->device,
                 place(j, a->made.site, made), comm->number, comm->rank, comm->nranks,
                 comm->device);
        report(j, &text, true, mixed(call->at.site, 5));
        return true;
    }
    if (a)
        return too_long(j, a, address(start), bytes, which, words, call, call->at);
    if (freed && (freed->kind == JUDGE_DEVICE || !j->options.kernels)) {
        report_freed(j, which, words, call->at, freed);
        return true;
    }
    bool nowhere = start == call->sendbuff ? call->send_nowhere : call->recv_nowhere;
    if (j->options.kernels && !nowhere)
        return false; // who knows who made it
    size_t before = position_of(j->uses, address(start));
    const struct allocation *near = before > 0 ? j->uses->table[before - 1] : NULL;
    if (near && address(start) - near->start <= FAR * (near->end - near->start)) {
        text_add(&text, "memory: %s of %s begins behind the end of a buffer\n", which,
                 call->at.call);
        add_here(j, &text);
        text_add(
            &text,
            "%s at %s\n"
            "  the address: %llu bytes behind the start of a buffer of %llu bytes made"
            " at %s\n"
            "  Hint: no memory of a GPU is there. An offset that is added to a pointer"
            " counts elements of\n"
            "        its type, not bytes.\n",
            words, place(j, call->at.site, where),
            (unsigned long long)(address(start) - near->start),
            (unsigned long long)(near->end - near->start),
            place(j, near->made.site, made));
        report(j, &text, true, mixed(call->at.site, 6));
        return true;
    }
    text_add(&text, "memory: %s of %s is not memory that a GPU can use\n", which,
             call->at.call);
    add_here(j, &text);
    text_add(
        &text,
        "%s at %s\n"
        "  Hint: NCCL wants addresses from cudaMalloc (or ncclMemAlloc, cudaMallocHost,"
        " cudaMallocManaged);\n"
        "        the real NCCL stops here with an illegal memory access.\n",
        words, place(j, call->at.site, where));
    report(j, &text, true, mixed(call->at.site, 6));
    return true;
}

/* NCCL computes only where it reduces, and only with numbers of other ranks. */
static bool call_misaligned(struct judge *j, const struct judge_call *call) {
    const struct comm_facts *comm = calls_comm(j, call->comm);
    bool reduces = call->kind == JUDGE_ALL_REDUCE || call->kind == JUDGE_REDUCE ||
                   call->kind == JUDGE_REDUCE_SCATTER;
    if (!reduces || !comm || comm->nranks < 2)
        return false;
    return (call_send_bytes(j, call) && misaligned(j, "sendbuff", call, call->sendbuff,
                                                   call->type_bytes, call->at)) ||
           (call_recv_bytes(j, call) &&
            misaligned(j, "recvbuff", call, call->recvbuff, call->type_bytes, call->at));
}

/* In place is what NCCL calls it; any other overlap makes garbage. */
static bool not_in_place(struct judge *j, const struct judge_call *call) {
    uint64_t send = address(call->sendbuff), recv = address(call->recvbuff);
    size_t out = call_send_bytes(j, call), in = call_recv_bytes(j, call);
    const struct comm_facts *comm = calls_comm(j, call->comm);
    if (!comm || !out || !in || send + out <= recv || recv + in <= send)
        return false;
    size_t block = call_bytes(call);
    const char *rule = "sendbuff == recvbuff";
    bool in_place = send == recv;
    switch (call->kind) {
    case JUDGE_ALL_GATHER:
        rule = "sendbuff == recvbuff + rank * sendcount";
        in_place = send == recv + (uint64_t)comm->rank * block;
        break;
    case JUDGE_REDUCE_SCATTER:
        rule = "recvbuff == sendbuff + rank * recvcount";
        in_place = recv == send + (uint64_t)comm->rank * block;
        break;
    case JUDGE_GATHER:
        rule = "sendbuff == recvbuff + root * count";
        in_place = send == recv + (uint64_t)call->root * block;
        break;
    case JUDGE_SCATTER:
        rule = "recvbuff == sendbuff + root * count";
        in_place = recv == send + (uint64_t)call->root * block;
        break;
    case JUDGE_ALL_TO_ALL: // nccl-tests times it so, and never looks at the result
        rule = "never";
        in_place = send == recv && j->uses->kernels;
        break;
    default: break;
    }
    if (in_place)
        return false;
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "mismatch: the buffers of %s overlap, and not as in place demands\n",
             call->at.call);
    add_here(j, &text);
    text_add(&text,
             "%s at %s, rank %d of the %d ranks of communicator %d\n"
             "  Hint: in place is, for this operation: %s.\n"
             "        The real NCCL overwrites data that it has not sent yet.\n",
             call_words(words, call), place(j, call->at.site, where), comm->rank,
             comm->nranks, comm->number, rule);
    report(j, &text, true, mixed(call->at.site, 7));
    return true;
}

static bool other_device(struct judge *j, const struct judge_call *call,
                         const struct stream *stream) {
    const struct comm_facts *comm = calls_comm(j, call->comm);
    if (!comm || !stream || !stream->made.call || stream->device == comm->device)
        return false;
    char words[JUDGE_PLACE], where[JUDGE_PLACE], made[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: the stream of %s belongs to another device than the communicator\n",
             call->at.call);
    add_here(j, &text);
    text_add(&text,
             "%s at %s\n"
             "  the stream: on device %d, made at %s\n"
             "  communicator %d: rank %d of %d ranks, on device %d\n"
             "  Hint: call cudaSetDevice before cudaStreamCreate.\n",
             call_words(words, call), place(j, call->at.site, where), stream->device,
             place(j, stream->made.site, made), comm->number, comm->rank, comm->nranks,
             comm->device);
    report(j, &text, true, mixed(call->at.site, 8));
    return true;
}

/* What is sent or added up is memory of which nobody ever wrote a byte. That alone is no
 * mistake (an all-reduce may be there to time it, or for a barrier; the NCCL User Guide's
 * Example 2 makes one): it is if the host looks at what comes of it, on this rank. */
static void sends_nothing(struct judge *j, const struct judge_call *call,
                          const struct stream *stream) {
    if (j->options.kernels || j->uses->kernels || (stream && stream->capture))
        return;
    uint64_t out = call_recv_bytes(j, call), to = address(call->recvbuff);
    const struct allocation *a =
        call_send_bytes(j, call) ? find(j->uses, address(call->sendbuff)) : NULL;
    struct allocation *b = out ? find(j->uses, to) : NULL;
    if (!a || !b || b->kind != JUDGE_DEVICE)
        return;
    const struct allocation *s =
        call->scalar ? find(j->uses, address(call->scalar)) : NULL;
    bool scalar = s && never_written(s);
    forget_fresh(b, to, to + out);
    if (!scalar && !never_written(a))
        return;
    struct fresh fresh = fresh_of(scalar ? s : a);
    fresh.scalar = scalar;
    fresh.call = *call;
    leaves_fresh(b, to, to + out, fresh, call->at.site);
}

/* "If an error occurs on the communicator, nothing can be assumed about the completion or
 * correctness of operations enqueued on that communicator" (NCCL User Guide,
 * ncclCommGetAsyncError). What a root sends out in place stays what it was. Who adds up
 * once more, with those that are left, may know that nothing had begun: only who reads
 * what is there is told. */
void uses_spoilt(struct judge *j, const struct judge_call *call, struct judge_at at) {
    uint64_t out = call_recv_bytes(j, call), to = address(call->recvbuff);
    struct allocation *b = out ? find(j->uses, to) : NULL;
    if (!b || b->kind != JUDGE_DEVICE || b->open || j->options.kernels ||
        j->uses->kernels ||
        (call->kind == JUDGE_BROADCAST && call->sendbuff == call->recvbuff))
        return;
    struct fresh fresh = fresh_of(b);
    fresh.call = *call;
    fresh.aborted = at;
    leaves_fresh(b, to, to + out, fresh, 0);
}

bool uses_check_call(struct judge *j, const struct judge_call *call,
                     const struct stream *stream) {
    bool wrong =
        one_buffer(j, call, "sendbuff", call->sendbuff, call_send_bytes(j, call)) ||
        one_buffer(j, call, "recvbuff", call->recvbuff, call_recv_bytes(j, call)) ||
        call_misaligned(j, call) || not_in_place(j, call) ||
        other_device(j, call, stream);
    if (!wrong)
        sends_nothing(j, call, stream);
    return wrong;
}

int uses_of_call(struct judge *j, const struct judge_call *call,
                 struct judge_range out[3]) {
    size_t send = call_send_bytes(j, call), recv = call_recv_bytes(j, call);
    int n = 0;
    if (send)
        out[n++] = (struct judge_range){call->sendbuff, send, false, true, 0};
    if (recv)
        out[n++] = (struct judge_range){call->recvbuff, recv, true, true, 0};
    if (call->scalar)
        out[n++] = (struct judge_range){call->scalar, call->type_bytes, false, true, 0};
    struct allocation *a = recv ? NULL : find(j->uses, address(call->recvbuff));
    if (a)
        a->left_alone = call->at;
    return n;
}

/* --- Races ------------------------------------------------------------------------ */

static const char between_streams[] = "  Hint: cudaEventRecord on the one stream,"
                                      " cudaStreamWaitEvent on the other.\n",
                  until_then[] = "  Hint: call cudaStreamSynchronize first: until then"
                                 " nothing is known of the operation.\n";

/* Of a use behind `clock` that races with an earlier one. False: other ranks may put them
 * in order, and the report is kept. */
static bool report_unordered(struct judge *j, struct text *text, const struct use *first,
                             const struct clock *clock, uint64_t key) {
    if (detour_possible(j, first, clock)) {
        free(text->at);
        return false;
    }
    report(j, text, true, key);
    return true;
}

/* Why the last wait of one stream does not put it behind what is queued on another. */
static void add_wait_in_vain(struct judge *j, struct text *text, const struct use *use,
                             const struct use *other) {
    char wait[JUDGE_PLACE], last[JUDGE_PLACE], before[JUDGE_PLACE];
    struct waited waited = order_waited(j->order, use->slot);
    if (!waited.at.call)
        return;
    place(j, waited.at.site, wait);
    place(j, waited.last.at.site, last);
    bool replaced = waited.before.slot == other->slot && waited.before.seq > other->seq;
    if (!waited.last.at.call)
        text_add(text, "  %s at %s waits for nothing: its event was not yet recorded\n",
                 waited.at.call, wait);
    else if (waited.last.slot == other->slot && waited.last.seq < other->seq)
        text_add(text,
                 "  %s at %s waits for %s at %s, and that was before the operation\n",
                 waited.at.call, wait, waited.last.at.call, last);
    else if (replaced && waited.last.slot != other->slot)
        text_add(text,
                 "  %s at %s waits for %s at %s, on another stream, no longer for that"
                 " at %s\n",
                 waited.at.call, wait, waited.last.at.call, last,
                 place(j, waited.before.at.site, before));
    else if (waited.last.slot == use->slot)
        text_add(text, "  %s at %s waits for %s at %s, on its own stream\n",
                 waited.at.call, wait, waited.last.at.call, last);
}

static void report_race(struct judge *j, const struct allocation *a,
                        const struct use *use, const struct clock *clock, bool write,
                        const struct use *other, bool other_writes) {
    char words[JUDGE_PLACE], there[JUDGE_PLACE], here[JUDGE_PLACE];
    struct text text = {0};
    bool copy = !other->is_call && (starts(other->at.call, "cudaMemcpy") ||
                                    starts(other->at.call, "cudaMemset"));
    text_add(&text, "race: %s\n",
             other->makes ? "memory is used on a stream that does not know of it yet"
             : use->launch && use->launch == other->launch
                 ? "two branches of a graph use one buffer with no event between"
             : use->legacy ? "a buffer is used while a queued operation still uses it"
                           : "two streams use one buffer with no event between");
    add_here(j, &text);
    text_add(&text, "%s at %s %s what\n", use_words(words, use),
             place(j, use->at.site, here), does(write));
    text_add(&text, "  %s at %s %s, and nothing makes one wait for the other\n",
             use_words(words, other), place(j, other->at.site, there),
             other->makes ? "makes on its stream" : does(other_writes));
    add_buffer(j, &text, a);
    add_failures_line(j, &text);
    if (use->legacy)
        text_add(&text, "  Hint: call cudaStreamSynchronize first; the default"
                        " stream does not wait for a non-blocking one.\n");
    else if (other->legacy && copy)
        text_add(
            &text,
            "  Hint: %s can return before the data is there, and a non-blocking stream"
            " does not wait\n"
            "        for the default stream: give the copy the same stream"
            " (cudaMemcpyAsync, cudaMemsetAsync),\n"
            "        or call cudaStreamSynchronize(0) after it.\n",
            other->at.call);
    else {
        add_wait_in_vain(j, &text, use, other);
        text_add(&text, "%s", between_streams);
    }
    report_unordered(j, &text, other, clock, pair_of(use->at.site, other->at.site));
}

/* Ranks of one communicator, each with a thread of its own. What one of them queued
 * before a call of NCCL, another rank's operation may come behind, though it was queued
 * earlier. */
static bool may_meet(struct judge *j, const struct use *use, const struct use *other) {
    int device = order_device_of(j->order, use->slot),
        its = order_device_of(j->order, other->slot);
    const struct comm_facts *a, *b;
    if (use->thread == other->thread || device == its)
        return false;
    for (int c = 0; (a = calls_comm(j, c)); c++)
        for (int d = 0; a->device == device && (b = calls_comm(j, d)); d++)
            if (b->device == its && b->id == a->id && !a->gone && !b->gone)
                return true;
    return false;
}

static bool is_known(const struct use *use, void *self) {
    const struct judge *j = self;
    return clock_covers(&j->known, use->slot, use->seq);
}

static void forget_some(struct judge *j) {
    struct uses *uses = j->uses;
    if (history_parts() <= uses->forget_at)
        return;
    for (size_t i = 0; i < uses->n; i++)
        history_forget(&uses->table[i]->history, is_known, j);
    uses->forget_at = 2 * history_parts() + 4096;
}

static bool is_of_comm(const struct use *use, void *self) {
    return use->is_call && use->call.comm == *(int *)self;
}

void uses_aborted(struct judge *j, int comm) {
    for (size_t i = 0; i < j->uses->n; i++)
        history_forget(&j->uses->table[i]->history, is_of_comm, &comm);
}

/* The part of a range that lies in its allocation; NULL: in none. */
static struct allocation *part_of(struct judge *j, const struct judge_range *range,
                                  uint64_t *from, uint64_t *to) {
    struct allocation *a = range->bytes ? find(j->uses, address(range->start)) : NULL;
    if (!a)
        return NULL;
    *from = address(range->start);
    *to = *from + range->bytes < a->end ? *from + range->bytes : a->end;
    return a;
}

/* --- Lent to MPI ------------------------------------------------------------------ */

static int lent_part(const struct uses *uses, uint64_t from, uint64_t to, bool write) {
    for (size_t i = 0; i < uses->nlent; i++) {
        const struct lent *lent = &uses->lent[i];
        if (lent->from < to && from < lent->to && (write || lent->write))
            return (int)i;
    }
    return -1;
}

int uses_lent(struct judge *j, const void *start, size_t bytes, bool write,
              struct judge_at at) {
    struct uses *uses = j->uses;
    uint64_t from = address(start), to = from + bytes;
    size_t i = uses->lent_free;
    while (i < uses->nlent && uses->lent[i].to)
        i++;
    if (i == uses->nlent) {
        ROOM(uses->lent, uses->nlent, &uses->lent_size);
        uses->nlent++;
    }
    uses->lent_free = i + 1;
    uses->lent[i] = (struct lent){.from = from, .to = to, .write = write, .at = at};
    return (int)i;
}

void uses_back(struct judge *j, int number) {
    struct uses *uses = j->uses;
    if (number < 0 || (size_t)number >= uses->nlent)
        return;
    uses->lent[number] = (struct lent){0};
    if ((size_t)number < uses->lent_free)
        uses->lent_free = (size_t)number;
    for (size_t i = uses->nlate; i-- > 0;)
        if (uses->late[i].lent == number)
            late_drop(uses, i);
    while (uses->nlent > 0 && !uses->lent[uses->nlent - 1].to)
        uses->nlent--;
}

static void report_lent(struct judge *j, const struct allocation *a, const char *words,
                        const char *verb, struct judge_at at, const struct lent *lent) {
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "race: %s %s a buffer that MPI still has\n", at.call, verb);
    add_here(j, &text);
    text_add(&text, "%s at %s %s what\n", words, place(j, at.site, where), verb);
    text_add(&text, "  %s at %s %s until its request is completed\n", lent->at.call,
             place(j, lent->at.site, where), does(lent->write));
    if (a)
        add_buffer(j, &text, a);
    text_add(&text, "  Hint: MPI_Wait, or an MPI_Test that says so, completes a request:"
                    " call it first.\n");
    report(j, &text, true, pair_of(at.site, lent->at.site));
}

/* What calls of NCCL, functions of the program or kernels come before it may make it wait
 * until MPI is done. If it has happened before the request is completed, it did not. */
static void check_lent(struct judge *j, const struct allocation *a, uint64_t from,
                       uint64_t to, bool write, struct use *use,
                       const struct clock *clock) {
    struct uses *uses = j->uses;
    char words[JUDGE_PLACE];
    int lent = uses->nlent ? lent_part(uses, from, to, write) : -1;
    if (lent < 0)
        return;
    if (!uses->kernels && !calls_before(j, use, clock)) {
        report_lent(j, a, use_words(words, use), does(write), use->at, &uses->lent[lent]);
        return;
    }
    if (!a)
        return;
    ROOM(uses->late, uses->nlate, &uses->late_size);
    uses->late[uses->nlate++] = (struct late){use, from, write, lent};
    use->holders++;
}

void uses_known(struct judge *j) {
    struct uses *uses = j->uses;
    char words[JUDGE_PLACE];
    for (size_t i = uses->nlate; i-- > 0;) {
        const struct late *late = &uses->late[i];
        const struct allocation *a = find(uses, late->at);
        if (!clock_covers(&j->known, late->use->slot, late->use->seq))
            continue;
        if (a)
            report_lent(j, a, use_words(words, late->use), does(late->write),
                        late->use->at, &uses->lent[late->lent]);
        late_drop(uses, i);
    }
}

void uses_add(struct judge *j, const struct judge_range *range, struct use *use,
              const struct clock *clock) {
    uint64_t from, to;
    bool its_write = false;
    struct allocation *a = part_of(j, range, &from, &to);
    if (!a) { // the host's own, which a copy uses before it returns
        from = address(range->start);
        check_lent(j, NULL, from, from + range->bytes, range->write, use, clock);
        return;
    }
    const struct use *other =
        history_add(&a->history, from, to, range->write, use, clock, &its_write);
    if (other && !may_meet(j, use, other))
        report_race(j, a, use, clock, range->write, other, its_write);
    check_lent(j, a, from, to, range->write, use, clock);
    if (a->shared && !j->uses->kernels) { // which may make it wait for others
        struct shared_part part = shared_part(a, from, to, range->write);
        shared_uses(j, &part, use, clock);
    }
    if (range->write && a->fresh && use->at.site != a->fresh->site)
        forget_fresh(a, from, to);
    if (range->write && !use->makes)
        mark_written(j->uses, a, use->source);
    if ((a->kind == JUDGE_PINNED || a->kind == JUDGE_MANAGED) && j->outside.host_memory &&
        !functions_before(j, use) && lent_part(j->uses, from, to, range->write) < 0)
        j->outside.host_memory(j->outside.self, (const void *)(uintptr_t)a->start, range);
    forget_some(j);
}

void uses_undo(struct judge *j, const struct judge_range *range, struct use *use) {
    uint64_t from, to;
    struct allocation *a = part_of(j, range, &from, &to);
    for (size_t i = j->uses->nlate; i-- > 0;)
        if (j->uses->late[i].use == use)
            late_drop(j->uses, i);
    if (a)
        history_undo(&a->history, from, to, use);
    if (a && a->shared)
        shared_taken_back(j, use);
}

/* --- The calls of one group ------------------------------------------------------- */

static void report_group(struct judge *j, const struct judge_range *a,
                         const struct judge_call *one, const struct judge_range *b,
                         const struct judge_call *other) {
    char words[JUDGE_PLACE], where[JUDGE_PLACE];
    struct text text = {0};
    const struct allocation *memory = find(j->uses, address(a->start));
    text_add(&text, "race: two calls of one group use the same memory\n");
    add_here(j, &text);
    text_add(&text, "%s at %s %s what\n", call_words(words, one),
             place(j, one->at.site, where), does(a->write));
    text_add(&text, "  %s at %s %s\n", call_words(words, other),
             place(j, other->at.site, where), does(b->write));
    if (memory)
        add_buffer(j, &text, memory);
    text_add(&text,
             "  Hint: the calls of a group happen at the same time, in no order.\n");
    report(j, &text, true, pair_of(one->at.site, mixed(other->at.site, 9)));
}

/* A send to oneself and a receive from oneself of the same bytes: nothing to do. */
static bool to_itself(struct judge *j, const struct judge_call *a,
                      const struct judge_call *b) {
    const struct comm_facts *comm = calls_comm(j, a->comm);
    return comm && a->comm == b->comm && a->root == comm->rank && b->root == comm->rank &&
           ((a->kind == JUDGE_SEND && b->kind == JUDGE_RECV &&
             a->sendbuff == b->recvbuff) ||
            (a->kind == JUDGE_RECV && b->kind == JUDGE_SEND &&
             a->recvbuff == b->sendbuff));
}

/* What is sent is what is overwritten, byte by byte: nccl-tests times it so, and never
 * looks at the result. A program that has kernels of its own may know what it does. */
static bool in_place(const struct judge *j, const struct judge_range *a,
                     const struct judge_call *one, const struct judge_range *b,
                     const struct judge_call *other) {
    return j->uses->kernels && a->start == b->start && a->bytes == b->bytes &&
           ((one->kind == JUDGE_SEND && other->kind == JUDGE_RECV) ||
            (one->kind == JUDGE_RECV && other->kind == JUDGE_SEND));
}

struct ordered {
    const struct judge_range *range;
    int of, at;
};

static int by_start(const void *a, const void *b) {
    const struct ordered *one = a, *other = b;
    uint64_t x = address(one->range->start), y = address(other->range->start);
    return x != y ? (x < y ? -1 : 1) : one->at - other->at;
}

void uses_group(struct judge *j, const struct judge_range *ranges, const int *of, int n,
                const struct judge_call *const *calls) {
    struct ordered *sorted = must_alloc((size_t)n * sizeof *sorted);
    for (int i = 0; i < n; i++)
        sorted[i] = (struct ordered){&ranges[i], of[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_start);
    // Only where a range begins before one has ended that it may not meet, all are looked
    // at.
    uint64_t read_until = 0, written_until = 0;
    for (int i = 0; i < n; i++) {
        const struct judge_range *b = sorted[i].range;
        uint64_t from = address(b->start), to = from + b->bytes;
        if (from < written_until || (b->write && from < read_until))
            for (int k = i - 1; k >= 0; k--) {
                const struct judge_range *a = sorted[k].range;
                const struct judge_call *one = calls[sorted[k].of],
                                        *other = calls[sorted[i].of];
                if (one == other || !(a->write || b->write) ||
                    address(a->start) + a->bytes <= from || to <= address(a->start) ||
                    to_itself(j, one, other) || in_place(j, a, one, b, other) ||
                    !find(j->uses, from))
                    continue;
                bool as_made = sorted[k].of < sorted[i].of;
                report_group(j, as_made ? a : b, as_made ? one : other, as_made ? b : a,
                             as_made ? other : one);
                break;
            }
        uint64_t *until = b->write ? &written_until : &read_until;
        *until = to > *until ? to : *until;
    }
    free(sorted);
}

/* --- The host --------------------------------------------------------------------- */

/* Not if the function of the program that runs in this thread comes before that use, or
 * one that has not ended, and may wait for the host. */
static bool may_have_begun(const struct use *use, void *self) {
    const struct judge *j = self;
    const struct function *f = j->thread ? j->thread->function : NULL;
    return !(f && function_before(f, use)) && !functions_before(j, use);
}

static bool not_of_default_stream(const struct use *use, void *self) {
    (void)self;
    return !use->legacy;
}

/* "Managing memory allocations using cudaMalloc and cudaFree causes the GPU to
 * synchronize across all executing CUDA streams" (CUDA C++ Programming Guide, "Stream
 * Ordered Memory Allocator"), though the reference says "may", and of cudaMallocAsync's
 * not at all. So a device's own work is done before its memory is gone. With a call of
 * NCCL that waits for other ranks. */
static bool outlasts_free(const struct use *use, void *self) {
    return use->is_call && not_of_default_stream(use, self);
}

static const struct use *unseen_use(struct judge *j, const struct allocation *a,
                                    uint64_t from, uint64_t to, bool write,
                                    bool *its_write) {
    from = from > a->start ? from : a->start;
    to = to < a->end ? to : a->end;
    return history_beyond(&a->history, from, to, write, &j->known, may_have_begun, j,
                          its_write);
}

/* `clock`: behind what `at` comes. False: the report is kept. */
static bool report_host(struct judge *j, const char *verb, struct judge_at at,
                        const struct use *use, const struct clock *clock,
                        bool in_stream) {
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "race: %s %s a buffer that a queued operation still uses\n", at.call,
             verb);
    add_here(j, &text);
    text_add(&text, "%s at %s\n", at.call, place(j, at.site, where));
    add_queued(j, &text, use);
    text_add(&text, "\n");
    add_failures_line(j, &text);
    text_add(&text, "%s", in_stream ? between_streams : until_then);
    return report_unordered(j, &text, use, clock, pair_of(at.site, use->at.site));
}

void uses_freed(struct judge *j, const void *start, int slot, struct judge_at at) {
    struct uses *uses = j->uses;
    size_t i = position_of(uses, address(start));
    struct allocation *a = i > 0 ? uses->table[i - 1] : NULL;
    if (!a || a->start != address(start))
        return;
    bool its_write;
    bool waits = slot < 0 && starts(a->made.call, "cudaMalloc") &&
                 a->kind != JUDGE_PINNED && !strstr(a->made.call, "Async");
    // It waits for the default stream's own copies anyway.
    const struct clock *clock = slot < 0 ? &j->known : order_clock(j->order, slot);
    const struct use *other = history_beyond(&a->history, a->start, a->end, true, clock,
                                             waits      ? outlasts_free
                                             : slot < 0 ? not_of_default_stream
                                                        : NULL,
                                             j, &its_write);
    if (other && !a->of_graph)
        report_host(j, a->kind == JUDGE_PEER ? "closes" : "frees", at, other, clock,
                    slot >= 0);
    int number = lent_part(uses, a->start, a->end, true);
    const struct lent *lent = number < 0 ? NULL : &uses->lent[number];
    if (lent && slot < 0 && !starts(a->made.call, "cudaHostRegister"))
        report_lent(j, a, at.call, "frees", at, lent);
    if (a->shared && slot < 0) {
        struct shared_part part = shared_part(a, a->start, a->end, true);
        shared_gone(j, &part, at);
    }
    // What the host registered is the host's again, not gone.
    if (!starts(a->made.call, "cudaHostRegister"))
        uses->freed[uses->nfreed++ % REMEMBERED] =
            (struct freed){a->start, a->end, a->kind, a->made, at};
    take_out(uses, i - 1);
}

bool uses_host(struct judge *j, const void *start, size_t bytes, bool write,
               bool device_too, struct judge_at at) {
    struct uses *uses = j->uses;
    uint64_t from = address(start), to = from + bytes;
    bool wrong = false;
    for (size_t i = bytes ? position_of(uses, to - 1) : 0; i-- > 0 && !wrong;) {
        struct allocation *a = uses->table[i];
        if (a->end <= from)
            break;
        if (write && device_too)
            a->written = true;
        bool its_write;
        const struct use *use = unseen_use(j, a, from, to, write, &its_write);
        if (on_gpu(a) && !device_too) {
            char where[JUDGE_PLACE];
            struct text text = {0};
            wrong = true;
            text_add(&text, "memory: a buffer of %s is device memory\n", at.call);
            add_here(j, &text);
            text_add(&text, "%s at %s\n", at.call, place(j, at.site, where));
            add_buffer(j, &text, a);
            text_add(
                &text,
                starts(at.call, "MPI_")
                    ? "  Hint: copy with cudaMemcpy to memory of the host, or let NCCL "
                      "send it."
                      " Only an MPI that was\n"
                      "        built for CUDA takes this address; with any other it is a"
                      " segmentation fault.\n"
                    : "  Hint: only the GPU can use this address, and the call fails: "
                      "copy with"
                      " cudaMemcpy to memory\n"
                      "        of the host.\n");
            report(j, &text, true, mixed(at.site, 10));
        } else if (use) {
            wrong = report_host(j, does(write), at, use, &j->known, false);
        }
    }
    return wrong;
}

bool uses_knew(struct judge *j, const void *at) {
    return find(j->uses, address(at)) || find_freed(j->uses, address(at));
}

bool uses_faults(struct judge *j, const void *at, bool write, bool write_known,
                 uint64_t site) {
    struct uses *uses = j->uses;
    const struct allocation *a = find(uses, address(at));
    const struct freed *gone = a ? NULL : find_freed(uses, address(at));
    const char *verb = !write_known ? "touches" : write ? "writes to" : "reads";
    char where[JUDGE_PLACE], made[JUDGE_PLACE], freed[JUDGE_PLACE];
    struct text text = {0};
    if (j->options.mode == JUDGE_OFF)
        return false;
    if (a && on_gpu(a)) {
        text_add(&text, "memory: the host %s device memory\n", verb);
        add_here(j, &text);
        text_add(
            &text,
            "at %s, byte %llu of %llu bytes of %s at %s\n"
            "  Hint: only the GPU can use this address; copy with cudaMemcpy.\n"
            "        On a real GPU the program ends here with a segmentation fault.\n",
            place(j, site, where), (unsigned long long)(address(at) - a->start),
            (unsigned long long)(a->end - a->start), a->made.call,
            place(j, a->made.site, made));
        report(j, &text, false, 0);
        return true;
    }
    if (a) {
        bool its_write;
        const struct use *use = unseen_use(j, a, address(at), address(at) + 1,
                                           write || !write_known, &its_write);
        if (!use)
            return false; // a neighbour on the same page
        bool in_stream = function_runs(j) != NULL;
        text_add(&text, "race: %s %s %s memory that a queued operation still uses\n",
                 in_stream ? "a function of cudaLaunchHostFunc" : "the host", verb,
                 kind_name(a->kind));
        add_here(j, &text);
        text_add(&text, "at %s, byte %llu of %llu bytes made at %s\n",
                 place(j, site, where), (unsigned long long)(address(at) - a->start),
                 (unsigned long long)(a->end - a->start), place(j, a->made.site, made));
        add_queued(j, &text, use);
        text_add(&text, ", which %s it\n", does(its_write));
        add_failures_line(j, &text);
        text_add(&text, "%s", in_stream ? between_streams : until_then);
        return report_unordered(j, &text, use, &j->known, pair_of(site, use->at.site)) &&
               j->options.mode == JUDGE_ON;
    }
    if (gone) {
        text_add(&text, "memory: the host %s %s memory that was freed before\n", verb,
                 kind_name(gone->kind));
        add_here(j, &text);
        text_add(&text, "at %s, byte %llu of %llu bytes made at %s, freed at %s\n",
                 place(j, site, where), (unsigned long long)(address(at) - gone->start),
                 (unsigned long long)(gone->end - gone->start),
                 place(j, gone->made.site, made), place(j, gone->freed.site, freed));
        report(j, &text, false, 0);
        return true;
    }
    return false;
}

bool uses_early(struct judge *j, const void *at, bool write) {
    const struct allocation *a = find(j->uses, address(at));
    bool its_write;
    return a && j->options.mode != JUDGE_OFF &&
           unseen_use(j, a, address(at), address(at) + 1, write, &its_write);
}

struct telling {
    struct judge *j;
    void (*each)(void *self, const void *start, size_t bytes, bool write);
    void *self;
};

static void tell_one(void *self, const struct use *use, uint64_t from, uint64_t to,
                     bool write) {
    struct telling *telling = self;
    if (may_have_begun(use, telling->j) &&
        lent_part(telling->j->uses, from, to, write) < 0)
        telling->each(telling->self, (const void *)(uintptr_t)from, (size_t)(to - from),
                      write);
}

void uses_each(struct judge *j, const void *start,
               void (*each)(void *self, const void *start, size_t bytes, bool write),
               void *self) {
    const struct allocation *a = find(j->uses, address(start));
    struct telling telling = {j, each, self};
    if (a)
        history_each(&a->history, &j->known, tell_one, &telling);
}

void uses_graph_gone(struct judge *j, const void *start, const struct use *use,
                     struct judge_at launch) {
    const struct freed *freed = find_freed(j->uses, address(start));
    char words[JUDGE_PLACE], where[JUDGE_PLACE], made[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text, "memory: a graph is launched that uses memory which was freed\n");
    add_here(j, &text);
    text_add(&text, "%s at %s\n", launch.call, place(j, launch.site, where));
    text_add(&text, "  captured: %s at %s\n", use_words(words, use),
             place(j, use->at.site, where));
    if (freed) {
        text_add(&text, "  the buffer: %llu bytes of %s memory made at %s",
                 (unsigned long long)(freed->end - freed->start), kind_name(freed->kind),
                 place(j, freed->made.site, made));
        text_add(&text, ", freed at %s\n", place(j, freed->freed.site, where));
    }
    text_add(
        &text,
        "  Hint: a graph keeps the addresses that it was captured with, not the memory:"
        " free it after\n"
        "        the last launch is done.\n");
    report(j, &text, true, mixed(launch.site, use->at.site));
}

/* --- Left behind ------------------------------------------------------------------ */

void add_left(struct judge *j, struct text *text, const char *what, size_t n,
              uint64_t site) {
    char where[JUDGE_PLACE];
    if (n > 0)
        text_add(text, "%s%zu %s%s (made at %s)", text->used ? ", " : "", n, what,
                 n == 1 ? "" : "s", place(j, site, where));
}

void uses_left(struct judge *j, struct text *text) {
    static const char *const names[] = {"device buffer", "pinned buffer",
                                        "managed buffer", "opened IPC handle"};
    for (int kind = JUDGE_DEVICE; kind <= JUDGE_PEER; kind++) {
        size_t n = 0;
        uint64_t site = 0;
        for (size_t i = 0; i < j->uses->n; i++) {
            const struct allocation *a = j->uses->table[i];
            if ((int)a->kind == kind && !a->of_graph) {
                n++;
                site = a->made.site;
            }
        }
        add_left(j, text, names[kind], n, site);
    }
}
