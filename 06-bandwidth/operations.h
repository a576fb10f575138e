/*
 * operations.h: how each operation of bandwidth is queued, and what the result must be.
 *
 * Each operation has two functions: the first queues it, the second returns what element
 * i of this rank's result must be. Rank 0 is the root.
 */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "lesson.h"

/* What is needed to queue an operation. */
struct call {
    int rank, nranks;
    size_t count, part; // elements of the buffer; those of one rank's part of it
    ncclComm_t comm;
    cudaStream_t stream;
};

/* Element i of what `rank` brings: whole numbers, so that sums are exact. */
static float value(int rank, size_t i) {
    return (float)(rank + (int)(i % 64));
}

/* For an element that is not part of this rank's result. */
static const float any = -1;

static ncclResult_t broadcast(const struct call *c, const float *send, float *recv) {
    return ncclBroadcast(send, recv, c->count, ncclFloat, 0, c->comm, c->stream);
}
static float of_root(const struct call *c, size_t i) {
    (void)c; // the same on all ranks
    return value(0, i);
}

static ncclResult_t all_reduce(const struct call *c, const float *send, float *recv) {
    return ncclAllReduce(send, recv, c->count, ncclFloat, ncclSum, c->comm, c->stream);
}
static float sum(const struct call *c, size_t i) {
    return (float)c->nranks * value(0, i) + (float)(c->nranks * (c->nranks - 1) / 2);
}

static ncclResult_t reduce(const struct call *c, const float *send, float *recv) {
    return ncclReduce(send, recv, c->count, ncclFloat, ncclSum, 0, c->comm, c->stream);
}
static float sum_at_root(const struct call *c, size_t i) {
    return c->rank == 0 ? sum(c, i) : any;
}

static ncclResult_t reduce_scatter(const struct call *c, const float *send, float *recv) {
    return ncclReduceScatter(send, recv, c->part, ncclFloat, ncclSum, c->comm, c->stream);
}
static float my_sums(const struct call *c, size_t i) {
    return i < c->part ? sum(c, (size_t)c->rank * c->part + i) : any;
}

static ncclResult_t all_gather(const struct call *c, const float *send, float *recv) {
    return ncclAllGather(send, recv, c->part, ncclFloat, c->comm, c->stream);
}
static float all_parts(const struct call *c, size_t i) {
    return value((int)(i / c->part), i % c->part);
}

static ncclResult_t all_to_all(const struct call *c, const float *send, float *recv) {
    CHECK_NCCL(ncclGroupStart()); // all sends and receives in it make progress together
    for (int peer = 0; peer < c->nranks; peer++) {
        const size_t at = (size_t)peer * c->part;
        CHECK_NCCL(ncclSend(send + at, c->part, ncclFloat, peer, c->comm, c->stream));
        CHECK_NCCL(ncclRecv(recv + at, c->part, ncclFloat, peer, c->comm, c->stream));
    }
    return ncclGroupEnd();
}
static float my_parts(const struct call *c, size_t i) {
    return value((int)(i / c->part), (size_t)c->rank * c->part + i % c->part);
}

static ncclResult_t send_recv(const struct call *c, const float *send, float *recv) {
    const int n = c->nranks, next = (c->rank + 1) % n, previous = (c->rank + n - 1) % n;
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(send, c->count, ncclFloat, next, c->comm, c->stream));
    CHECK_NCCL(ncclRecv(recv, c->count, ncclFloat, previous, c->comm, c->stream));
    return ncclGroupEnd();
}
static float of_previous(const struct call *c, size_t i) {
    return value((c->rank + c->nranks - 1) % c->nranks, i);
}

#endif
