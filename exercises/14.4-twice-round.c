//: kind build
//: title Twice round the ring
//: trains an interleaved schedule, with two chunks of layers on each rank
//: ranks 2 3 | 4 7 8
//: calls ncclSend ncclRecv
//: starter output of micro-batch 0
//: learned In an interleaved schedule each rank has several short chunks of layers; the pipeline fills faster, but sends more messages.
//: why A group sends the last result and receives the next input at once, so no rank of the ring waits in a send.
//: hint In which order does a rank compute? First all micro-batches with chunk 0, then all with chunk 1.
//:   Whose results does rank 0 receive for chunk 1?
//: hint If every rank of a ring waits in its send until the next one receives, all wait for ever.
//:   Two calls in one group don't wait for one another.
//: hint Number the pieces: piece p is micro-batch p % n with chunk p / n. Before each piece: one
//:   group that sends the result of piece p - 1 and receives the input of piece p. After the last: its send.
//: file

/*
 * An interleaved pipeline, forward. A rank has two chunks of layers: chunk 0 is stage
 * `rank` of the model, and chunk 1 is stage `n + rank`, where n is the number of ranks.
 * So a micro-batch passes all ranks in turn, and then all of them once more. What the
 * last rank makes with its chunk 0 goes to rank 0, for its chunk 1.
 *
 * There are n micro-batches of `count` floats. Each rank computes all of them with chunk
 * 0, in their order, and then all with chunk 1. x[m] is where compute() works on
 * micro-batch m. On rank 0 all of them are there at first; on the last rank they should
 * be there in the end, after all stages. Write the pass. `previous` and `next` are the
 * neighbours in the ring.
 */
#include "lesson.h"

/* Queues one chunk's work on x[m], in its place. */
void compute(int chunk, float *x, cudaStream_t stream);

void forward(float *const *x, size_t count, int rank, int n, int previous, int next,
             ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Yours: about ten lines.
    //: solution
    for (int p = 0; p <= 2 * n; p++) {
        CHECK_NCCL(ncclGroupStart());
        // All results go on, but for those of the last stage.
        if (p > 0 && !(rank == n - 1 && p > n))
            CHECK_NCCL(ncclSend(x[(p - 1) % n], count, ncclFloat, next, comm, stream));
        if (p < 2 * n && !(rank == 0 && p < n))
            CHECK_NCCL(ncclRecv(x[p % n], count, ncclFloat, previous, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
        if (p < 2 * n)
            compute(p / n, x[p % n], stream);
    }
    //: wrong no-group: NCCL CHECK: deadlock
    for (int p = 0; p < 2 * n; p++) {
        if (!(rank == 0 && p < n))
            CHECK_NCCL(ncclRecv(x[p % n], count, ncclFloat, previous, comm, stream));
        compute(p / n, x[p % n], stream);
        if (!(rank == n - 1 && p >= n))
            CHECK_NCCL(ncclSend(x[p % n], count, ncclFloat, next, comm, stream));
    }
    //: wrong one-round: has passed
    for (int p = 0; p <= n; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (p > 0 && rank < n - 1)
            CHECK_NCCL(ncclSend(x[p - 1], count, ncclFloat, next, comm, stream));
        if (p < n && rank > 0)
            CHECK_NCCL(ncclRecv(x[p], count, ncclFloat, previous, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
        if (p < n)
            compute(0, x[p], stream);
    }
    //: wrong both-chunks: has passed
    for (int p = 0; p <= n; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (p > 0 && rank < n - 1)
            CHECK_NCCL(ncclSend(x[p - 1], count, ncclFloat, next, comm, stream));
        if (p < n && rank > 0)
            CHECK_NCCL(ncclRecv(x[p], count, ncclFloat, previous, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
        if (p < n) {
            compute(0, x[p], stream);
            compute(1, x[p], stream);
        }
    }
    //: wrong last-sends-too: NCCL CHECK:
    for (int p = 0; p <= 2 * n; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (p > 0)
            CHECK_NCCL(ncclSend(x[(p - 1) % n], count, ncclFloat, next, comm, stream));
        if (p < 2 * n && !(rank == 0 && p < n))
            CHECK_NCCL(ncclRecv(x[p % n], count, ncclFloat, previous, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
        if (p < 2 * n)
            compute(p / n, x[p % n], stream);
    }
    //: end
}
//: check
#include <cublas_v2.h>

enum { COUNT = 40, MOST = 64 };
static cublasHandle_t blas;

void forward(float *const *x, size_t count, int rank, int n, int previous, int next,
             ncclComm_t comm, cudaStream_t stream);
void compute(int chunk, float *x, cudaStream_t stream);

/* A stage divides by two and marks number `stage` of the first ones with a power of two:
 * number 0 counts the stages, and 1 tells their order. */
static float *marks;

void compute(int chunk, float *x, cudaStream_t stream) {
    const float one = 1, half = 0.5f;
    const int stage = chunk * check_nranks + check_rank;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSscal(blas, 1, &half, x + 1, 1));
    CHECK_CUBLAS(cublasSaxpy(blas, 2, &one, marks + 2 * stage, 1, x, 1));
}

void check(void) {
    const int n = check_nranks;
    CHECK_CUBLAS(cublasCreate(&blas));
    check_case("%d micro-batches", n);
    float host[4 * MOST], *x[MOST], numbers[COUNT];
    for (int stage = 0; stage < 2 * n; stage++) {
        host[2 * stage] = 1;                      // how many stages it has passed
        host[2 * stage + 1] = (float)(stage + 1); // halved by each that follows
    }
    marks = check_device(sizeof host);
    check_put(marks, host, (size_t)n * 4 * sizeof(float));
    for (int m = 0; m < n; m++) {
        x[m] = check_device(sizeof numbers);
        for (size_t i = 0; i < COUNT; i++)
            numbers[i] = check_rank > 0 || i < 2 ? 0 : (float)check_data(m, i);
        check_put(x[m], numbers, sizeof numbers);
    }
    forward(x, COUNT, check_rank, n, (check_rank + n - 1) % n, (check_rank + 1) % n,
            check_comm, check_stream);
    float order = 0;
    for (int stage = 0; stage < 2 * n; stage++)
        order = order / 2 + (float)(stage + 1);
    for (int m = 0; m < n; m++) {
        check_get(numbers, x[m], sizeof numbers);
        if (check_rank < n - 1)
            continue;
        check_that(numbers[0] == (float)(2 * n),
                   "the output of micro-batch %d has passed %g stages, expected %d", m,
                   (double)numbers[0], 2 * n);
        check_that(
            numbers[1] == order,
            "the output of micro-batch %d has passed the stages in a different order", m);
        for (size_t i = 2; i < COUNT; i++)
            check_that(numbers[i] == (float)check_data(m, i),
                       "the output of micro-batch %d is that of a different one", m);
    }
    CHECK_CUBLAS(cublasDestroy(blas));
}
