/*
 * mpi_buffers.c: what an MPI call is given: which buffers it has and until when.
 */
#define _GNU_SOURCE
#include "mpi_buffers.h"

#include "base/base.h"
#include "pages.h"
#include "talk.h"

enum { MOST_BUFFERS = 16 };
static __thread struct {
    struct mpi_buffer at[MOST_BUFFERS];
    int n;
} mine;

/* The bytes between the first and the last that a call uses, and how many of them it uses
 * for certain: all of them, or, of a type with holes, none. */
struct span {
    const char *start;
    size_t used, all;
};

static void has(struct span span, bool write) {
    if (mine.n < MOST_BUFFERS)
        mine.at[mine.n++] = (struct mpi_buffer){span.start, span.used, write, -1};
}

void mpi_gives_back(void) {
    mine.n = 0;
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

static struct span span_of(const void *buffer, long long count, MPI_Datatype type) {
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
    span.start = (const char *)buffer + true_low;
    span.all = (size_t)(true_extent + (count - 1) * extent);
    span.used =
        size == extent && extent == true_extent ? (size_t)count * (size_t)size : 0;
    return span;
}

bool mpi_takes_device_memory(void) {
    return !OVER_STANDIN || STANDIN(cuda_aware)();
}

void mpi_uses(const struct judge_at *at, const void *buffer, long long count,
              MPI_Datatype type, bool write) {
    struct span span = span_of(buffer, count, type);
    if (span.all == 0)
        return;
    if (span.used > 0) {
        if (judge_host_uses(front_in(), span.start, span.used, write,
                            mpi_takes_device_memory(), *at))
            pages_gone(span.start); // the checks only warn
        front_out();
    }
    has(span, write);
}

void mpi_uses_vs(const struct judge_at *at, const void *buffer, const int *counts,
                 const int *displs, MPI_Datatype type, MPI_Comm comm, bool write) {
    MPI_Aint low, extent;
    if (!counts || !displs || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ||
        type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_get_extent(type, &low, &extent);
    for (int r = 0, n = mpi_size(comm); r < n; r++)
        mpi_uses(at, (const char *)buffer + displs[r] * extent, counts[r], type, write);
}

/* Others will read and write it, at any time and unseen. */
void mpi_win(const struct judge_at *at, const void *buffer) {
    if (!buffer)
        return;
    struct judge *j = front_in();
    judge_host_uses(j, buffer, 1, true, mpi_takes_device_memory(), *at);
    judge_memory_open(j, buffer);
    pages_gone(buffer);
    front_out();
}

bool mpi_is_root(int root, MPI_Comm comm) {
    return mpi_is_inter(comm) ? root == MPI_ROOT : root == mpi_rank(comm);
}

int mpi_size(MPI_Comm comm) {
    int n = 0;
    if (mpi_is_inter(comm))
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

int mpi_peer(int rank) {
    return rank >= 0 ? rank : rank == MPI_ANY_SOURCE ? JUDGE_ONE_OF : JUDGE_ANY;
}
