/*
 * factors.h: the operations of bandwidth with their bus factors, and the check of a
 * result.
 */
#ifndef FACTORS_H
#define FACTORS_H

#include "operations.h"

/* How often the bytes of a buffer cross one rank's link, with n ranks. */
static double once(int n) {
    return n > 0;
}
static double others(int n) {
    return (n - 1.0) / n;
}
static double twice_others(int n) {
    return 2 * others(n);
}

/* One row for each operation: its name, how it is queued, what element i of its result
 * must be, its bus factor, and whether every rank has a part of the buffer. */
static const struct operation {
    const char *name;
    ncclResult_t (*queue)(const struct call *c, const float *send, float *recv);
    float (*result)(const struct call *c, size_t i);
    double (*factor)(int nranks);
    bool parts;
} operations[] = {
    {"broadcast", broadcast, of_root, once, false},
    {"reduce", reduce, sum_at_root, once, false},
    {"all_reduce", all_reduce, sum, twice_others, false},
    {"reduce_scatter", reduce_scatter, my_sums, others, true},
    {"all_gather", all_gather, all_parts, others, true},
    {"all_to_all", all_to_all, my_parts, others, true},
    {"send_recv", send_recv, of_previous, once, false},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* Runs an operation once, and compares every element of its result. */
static inline void check(const struct operation *op, const struct call *c,
                         const float *send, float *recv, float *host) {
    const size_t bytes = c->count * sizeof(float);
    CHECK_CUDA(cudaMemsetAsync(recv, 255, bytes, c->stream));
    CHECK_NCCL(op->queue(c, send, recv));
    CHECK_CUDA(cudaStreamSynchronize(c->stream));
    CHECK_CUDA(cudaMemcpy(host, recv, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < c->count; i++) {
        const float expected = op->result(c, i);
        if (expected != any)
            lesson_expect(i, (double)host[i], (double)expected);
    }
}

#endif
