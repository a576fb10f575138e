/*
 * mpi_front.c: what an MPI call is given: which buffers it has and until when, and which
 * ranks of the world its communicators mean.
 */
#define _GNU_SOURCE
#include "mpi_front.h"

#include "../base.h"
#include "talk.h"
#include "types.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- The buffers of the call that this thread makes ---------------------------- */

enum { MOST_BUFFERS = 16 };
static __thread struct {
    struct mpi_buffer at[MOST_BUFFERS];
    int n;
} mine;

/* The bytes that a call uses, of a type with holes the first, and those between its first
 * and its last; 0: none. */
struct span {
    const char *start;
    size_t used, all;
};

void mpi_hold(struct judge *j, const struct mpi_buffer *buffer) {
    if (buffer->guarded)
        guard_hold(j, buffer->start, buffer->bytes);
}

void mpi_let_go(struct judge *j, const struct mpi_buffer *buffer) {
    if (buffer->guarded)
        guard_let_go(j, buffer->start, buffer->bytes);
}

static void has(struct span span, bool write) {
    bool guarded = guard_may_be_shared(span.start, span.all);
    if (mine.n == MOST_BUFFERS) {
        if (guarded)
            guard_never(span.start);
        return;
    }
    mine.at[mine.n++] =
        (struct mpi_buffer){span.start, span.used, span.all, write, guarded, -1};
    if (!guarded)
        return;
    guard_hold(front_in(), span.start, span.all);
    front_out();
}

void mpi_gives_back(void) {
    while (mine.n > 0) {
        const struct mpi_buffer *b = &mine.at[--mine.n];
        if (!b->guarded)
            continue;
        guard_let_go(front_in(), b->start, b->bytes);
        front_out();
    }
}

struct mpi_buffer *mpi_hands_over(int *n) {
    size_t bytes = (size_t)mine.n * sizeof mine.at[0];
    struct mpi_buffer *buffers = mine.n > 0 ? must_alloc(bytes) : NULL;
    if (buffers)
        memcpy(buffers, mine.at, bytes);
    *n = mine.n;
    mine.n = 0;
    return buffers;
}

/* --- What the arguments of a call say of them ----------------------------------- */

static struct span span_of(const void *buffer, MPI_Aint skip, long long count,
                           MPI_Datatype type) {
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    struct span span = {0};
    if (count <= 0 || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ||
        type == MPI_DATATYPE_NULL)
        return span;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    if (size == 0)
        return span;
    span.start = (const char *)buffer + skip + true_low;
    span.all = (size_t)(true_extent + (count - 1) * extent);
    span.used =
        size == extent && extent == true_extent ? (size_t)count * (size_t)size : 1;
    return span;
}

/* What the call that this thread is in reads and writes, where it has no holes. */
enum { MOST_PARTS = 16 };
static __thread struct {
    struct span at[MOST_PARTS];
    bool write[MOST_PARTS];
    int n;
} parts;

void (*mpi_stack_is)(const char *frame, const struct judge_at *at);

void mpi_begins(const char *frame, const struct judge_at *at) {
    parts.n = 0;
    if (mpi_stack_is)
        mpi_stack_is(frame, at);
}

const void *mpi_one_buffer(void) {
    return parts.n > 0 ? parts.at[0].start : NULL;
}

bool mpi_overlap(const char *start, size_t bytes, const char *other, size_t its_bytes) {
    return start < other + its_bytes && other < start + bytes;
}

/* "Unless specified otherwise, an argument of type OUT or type INOUT cannot be aliased
 * with any other argument" (MPI 4.1, 2.3). MPI_Sendrecv_replace has one for both. */
static void check_parts(struct span span, bool write, const struct judge_at *at) {
    static const char REPLACES[] = "MPI_Sendrecv_replace";
    bool overlap = false;
    if (span.used != span.all || parts.n == MOST_PARTS || strcmp(at->call, REPLACES) == 0)
        return;
    for (int i = 0; i < parts.n; i++)
        overlap |= parts.write[i] != write &&
                   mpi_overlap(parts.at[i].start, parts.at[i].all, span.start, span.all);
    parts.at[parts.n] = span;
    parts.write[parts.n++] = write;
    if (!overlap)
        return;
    judge_mpi_overlap(front_in(), *at);
    front_out();
}

struct looking {
    const struct judge_at *at;
    bool write;
};

static void look_at(void *self, const char *start, size_t bytes) {
    const struct looking *call = self;
    guard_at_gate(start, bytes, call->write);
    // Whether this MPI takes device memory is known only of the stand-in's: it never
    // does.
    judge_host_uses(front_in(), start, bytes, call->write, !standin_host_blocks,
                    *call->at);
    front_out();
}

static bool is_known(const char *address) {
    struct judge_memory memory;
    bool found = judge_memory_find(front_in(), address, &memory);
    front_out();
    return found;
}

static void look(const struct judge_at *at, const void *buffer, MPI_Aint skip,
                 long long count, MPI_Datatype type, bool write) {
    struct span span = span_of(buffer, skip, count, type);
    struct looking call = {at, write};
    if (span.used == 0)
        return;
    check_parts(span, write, at);
    if (span.used == span.all || !is_known(span.start) ||
        !types_blocks((const char *)buffer + skip, count, type, look_at, &call))
        look_at(&call, span.start, span.used);
    has(span, write);
}

void mpi_will_have(const void *buffer, int count, MPI_Datatype type, bool write) {
    struct span span = span_of(buffer, 0, count, type);
    if (span.used > 0)
        has(span, write);
}

void mpi_in(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type) {
    look(at, buffer, 0, count, type, false);
}

void mpi_out(const struct judge_at *at, const void *buffer, int count,
             MPI_Datatype type) {
    look(at, buffer, 0, count, type, true);
}

/* The k-th part of the buffer, for ranks[k]: `counts[k]` elements, or `count`, from the
 * displs[k]-th on, or one behind the other. Nothing for a rank that is not there; `ranks`
 * NULL: all are. */
static void look_parts(const struct judge_at *at, const void *buffer, const int *counts,
                       const int *displs, int count, const int *ranks, int n,
                       MPI_Datatype type, bool write) {
    MPI_Aint low, extent;
    if (buffer == MPI_IN_PLACE || type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_get_extent(type, &low, &extent);
    for (int k = 0; k < n; k++)
        if (!ranks || ranks[k] != MPI_PROC_NULL)
            look(at, buffer, (displs ? displs[k] : (MPI_Aint)k * count) * extent,
                 counts ? counts[k] : count, type, write);
}

static void look_vs(const struct judge_at *at, const void *buffer, const int *counts,
                    const int *displs, MPI_Datatype type, MPI_Comm comm, bool write) {
    if (counts && displs)
        look_parts(at, buffer, counts, displs, 0, NULL, mpi_size(comm), type, write);
}

void mpi_invs(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, MPI_Datatype type, MPI_Comm comm) {
    look_vs(at, buffer, counts, displs, type, comm, false);
}

void mpi_outvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm) {
    look_vs(at, buffer, counts, displs, type, comm, true);
}

static int by_start(const void *a, const void *b) {
    const struct span *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

/* "The specification of counts, types, and displacements should not cause any location on
 * the root to be written more than once. Such a call is erroneous" (MPI 4.1, 6.5, of
 * MPI_Gatherv; MPI_Allgatherv is one for each root, 6.7). What is in place already is not
 * written. Parts of a type with holes may lie within one another. */
void mpi_apart(const struct judge_at *at, const void *sent, const void *buffer,
               const int *counts, const int *displs, MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low, extent;
    int n = mpi_size(comm), mine = sent == MPI_IN_PLACE ? mpi_rank(comm) : -1, used = 0;
    bool overlap = false;
    if (!counts || !displs || type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_get_extent(type, &low, &extent);
    struct span *all = must_alloc((size_t)n * sizeof *all);
    for (int r = 0; r < n; r++) {
        struct span span = span_of(buffer, displs[r] * extent, counts[r], type);
        if (r != mine && span.used > 0 && span.used == span.all)
            all[used++] = span;
    }
    qsort(all, (size_t)used, sizeof *all, by_start);
    for (int i = 1; i < used; i++)
        overlap |= all[i - 1].start + all[i - 1].all > all[i].start;
    free(all);
    if (!overlap)
        return;
    judge_mpi_parts_overlap(front_in(), *at);
    front_out();
}

static void look_ws(const struct judge_at *at, const void *buffer, const int *counts,
                    const int *displs, const MPI_Datatype *types, MPI_Comm comm,
                    bool write) {
    int n = mpi_size(comm);
    for (int r = 0; buffer != MPI_IN_PLACE && counts && displs && types && r < n; r++)
        look(at, buffer, displs[r], counts[r], types[r], write);
}

void mpi_inws(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, const MPI_Datatype *types, MPI_Comm comm) {
    look_ws(at, buffer, counts, displs, types, comm, false);
}

void mpi_outws(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, const MPI_Datatype *types, MPI_Comm comm) {
    look_ws(at, buffer, counts, displs, types, comm, true);
}

static void look_neighbours(const struct judge_at *at, const void *buffer,
                            const int *counts, const int *displs, int count,
                            MPI_Datatype type, MPI_Comm comm, bool write) {
    if (comm == MPI_COMM_NULL)
        return;
    int *ranks, n = types_neighbours(comm, write, &ranks);
    look_parts(at, buffer, counts, displs, count, ranks, n, type, write);
    free(ranks);
}

void mpi_inns(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type,
              MPI_Comm comm) {
    look_neighbours(at, buffer, NULL, NULL, count, type, comm, false);
}

void mpi_outns(const struct judge_at *at, const void *buffer, int count,
               MPI_Datatype type, MPI_Comm comm) {
    look_neighbours(at, buffer, NULL, NULL, count, type, comm, true);
}

void mpi_innvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm) {
    if (counts && displs)
        look_neighbours(at, buffer, counts, displs, 0, type, comm, false);
}

void mpi_outnvs(const struct judge_at *at, const void *buffer, const int *counts,
                const int *displs, MPI_Datatype type, MPI_Comm comm) {
    if (counts && displs)
        look_neighbours(at, buffer, counts, displs, 0, type, comm, true);
}

/* Read as the system would: the memory may be gone by now. Another number in any word
 * gives another hash. */
static bool hash_of(const struct mpi_sent *sent, uint64_t *hash) {
    uint64_t words[512];
    *hash = 0;
    for (size_t done = 0; done < sent->bytes; done += sizeof words) {
        size_t left = sent->bytes - done, n = left < sizeof words ? left : sizeof words;
        struct iovec from = {(char *)(uintptr_t)sent->start + done, n}, to = {words, n};
        words[(n - 1) / sizeof *words] = 0; // of which a part may stay
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)n)
            return false;
        for (size_t i = 0; i <= (n - 1) / sizeof *words; i++)
            *hash = (*hash ^ words[i]) * UINT64_C(0x100000001b3);
    }
    return true;
}

/* (On GPUs the bytes may be the device's.) */
void mpi_keep_sent(struct mpi_sent *sent, const void *buffer, int count,
                   MPI_Datatype type) {
    enum { FIRST = 16384 };
    struct span span = span_of(buffer, 0, count, type);
    struct judge_memory memory;
    *sent = (struct mpi_sent){0};
    if (!standin_host_blocks || span.used != span.all || span.used == 0)
        return;
    bool found = judge_memory_find(front_in(), span.start, &memory);
    front_out();
    if (found && memory.kind != JUDGE_PINNED && memory.kind != JUDGE_MANAGED)
        return;
    sent->start = span.start;
    sent->bytes = span.used < FIRST ? span.used : FIRST;
    if (!hash_of(sent, &sent->hash))
        sent->bytes = 0;
}

bool mpi_sent_changed(const struct mpi_sent *sent) {
    uint64_t hash;
    return sent->bytes > 0 && hash_of(sent, &hash) && hash != sent->hash;
}

/* Others will read and write it, at any time and unseen. */
void mpi_win(const struct judge_at *at, const void *buffer) {
    if (!buffer)
        return;
    struct judge *j = front_in();
    judge_host_uses(j, buffer, 1, true, !standin_host_blocks, *at);
    judge_memory_open(j, buffer);
    front_out();
    guard_never(buffer);
}

/* --- Conditions and counts ----------------------------------------------------- */

static bool is_inter(MPI_Comm comm) {
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

bool mpi_is_root(int root, MPI_Comm comm) {
    return is_inter(comm) ? root == MPI_ROOT : root == mpi_rank(comm);
}

int mpi_size(MPI_Comm comm) {
    int n = 0;
    if (is_inter(comm))
        PMPI_Comm_remote_size(comm, &n);
    else
        PMPI_Comm_size(comm, &n);
    return n;
}

int mpi_rank(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

int mpi_sum(const int *counts, MPI_Comm comm) {
    int sum = 0, n;
    PMPI_Comm_size(comm, &n);
    for (int r = 0; r < n; r++)
        sum += counts[r];
    return sum;
}

/* --- Whom a call waits for ----------------------------------------------------- */

int mpi_peer(int rank) {
    return rank >= 0 ? rank : rank == MPI_ANY_SOURCE ? JUDGE_ONE_OF : JUDGE_ANY;
}

static int ranks_of(const struct mpi_of *of, int *out, int most) {
    MPI_Group group, all;
    int n, inter = 0, *ranks;
    if (!of->grouped) {
        if (of->comm == MPI_COMM_NULL)
            return -1;
        PMPI_Comm_test_inter(of->comm, &inter);
        if (inter)
            PMPI_Comm_remote_group(of->comm, &group);
        else
            PMPI_Comm_group(of->comm, &group);
    }
    MPI_Group theirs = of->grouped ? of->group : group;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(theirs, &n);
    if (of->peer >= n || n > most) {
        n = -1;
    } else {
        n = of->peer >= 0 ? 1 : n;
        ranks = calloc((size_t)n + 1, sizeof *ranks);
        for (int i = 0; i < n; i++)
            ranks[i] = of->peer >= 0 ? of->peer : i;
        PMPI_Group_translate_ranks(theirs, n, ranks, all, out);
        for (int i = 0, known = n; i < known; i++)
            if (out[i] == MPI_UNDEFINED) // of another job
                n = -1;
        free(ranks);
    }
    if (!of->grouped)
        PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return n;
}

int mpi_world_ranks(void *self, const void *call, int *out, int most) {
    const struct mpi_whom *whom = call;
    int *more = must_alloc(((size_t)front_job.nranks + 1) * sizeof *more),
        n = front_job.mpi_up ? 0 : -1;
    (void)self;
    for (int i = 0; i < whom->n && n >= 0; i++) {
        int found = ranks_of(&whom->of[i], more, front_job.nranks);
        for (int r = 0; r < found; r++) {
            bool there = false;
            for (int k = 0; k < n && !there; k++)
                there = out[k] == more[r];
            if (!there && n < most)
                out[n++] = more[r];
        }
        n = found < 0 ? -1 : n;
    }
    free(more);
    return n;
}
