//: kind build
//: title Up and down a tree
//: trains the tree for small messages: 2 log2 N steps instead of 2 (N-1)
//: ranks 3 7 | 1 2 4 8
//: run 7 NCCL_CPU_CLOCK=h200
//: only ncclSend ncclRecv
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of buf is …, expected
//: learned A tree of N ranks is about log2 N high: a small message goes up and down in a few steps, while a ring takes 2 (N-1).
//: why On the way up each step halves the ranks that still hold a part of the sum; the way down is the same, backwards.
//: hint First the way up: in step `distance` = 1, 2, 4, … who gives its sum to whom, so that rank 0 has all in the end?
//: hint Up: a rank that is an odd multiple of `distance` sends to rank - distance; one that is an even multiple receives
//:   from rank + distance, if there is such a rank, and adds. Down: the same pairs in the other direction, the largest distance first.
//: hint for (d = 1; d < nranks; d *= 2): if (rank % (2 * d) == d) send to rank - d; else if (rank % (2 * d) == 0 &&
//:   rank + d < nranks) receive from rank + d into `scratch`, and add. Then the same loop from the largest d down to 1, with
//:   send and receive exchanged, into buf.
//: file

/*
 * An all-reduce by a tree, from ncclSend and ncclRecv: the sums go up to rank 0, and the
 * total comes down again. It must work on any number of ranks, and no rank may need more
 * than about log2(nranks) steps up and as many down: not one after the other along all
 * ranks. `scratch` has room for `count` floats. Don't wait: the caller does.
 */
#include "lesson.h"

/* Queues buf[i] += other[i] on the stream; it is there. */
void add(float *buf, const float *other, size_t count, cudaStream_t stream);

void tree_sum(float *buf, float *scratch, size_t count, int rank, int nranks,
              ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Up, then down.
    //: solution
    int top = 1;
    for (int d = 1; d < nranks; d *= 2) {
        top = d;
        if (rank % (2 * d) == d) {
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank - d, comm, stream));
        } else if (rank % (2 * d) == 0 && rank + d < nranks) {
            CHECK_NCCL(ncclRecv(scratch, count, ncclFloat32, rank + d, comm, stream));
            add(buf, scratch, count, stream);
        }
    }
    for (int d = top; d >= 1; d /= 2) {
        if (rank % (2 * d) == d)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - d, comm, stream));
        else if (rank % (2 * d) == 0 && rank + d < nranks)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + d, comm, stream));
    }
    //: right children
    for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < nranks; child++) {
        CHECK_NCCL(ncclRecv(scratch, count, ncclFloat32, child, comm, stream));
        add(buf, scratch, count, stream);
    }
    if (rank > 0) {
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, (rank - 1) / 2, comm, stream));
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, (rank - 1) / 2, comm, stream));
    }
    for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < nranks; child++)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, child, comm, stream));
    //: wrong only-up: expected
    for (int d = 1; d < nranks; d *= 2) {
        if (rank % (2 * d) == d) {
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank - d, comm, stream));
        } else if (rank % (2 * d) == 0 && rank + d < nranks) {
            CHECK_NCCL(ncclRecv(scratch, count, ncclFloat32, rank + d, comm, stream));
            add(buf, scratch, count, stream);
        }
    }
    //: wrong not-added: expected
    for (int d = 1; d < nranks; d *= 2) {
        if (rank % (2 * d) == d)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank - d, comm, stream));
        else if (rank % (2 * d) == 0 && rank + d < nranks)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank + d, comm, stream));
    }
    for (int d = 64; d >= 1; d /= 2) {
        if (rank % (2 * d) == d)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - d, comm, stream));
        else if (rank % (2 * d) == 0 && rank + d < nranks)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + d, comm, stream));
    }
    //: wrong power-of-two: NCCL CHECK:
    for (int d = 1; d < nranks; d *= 2) {
        if (rank % (2 * d) == d) {
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank - d, comm, stream));
        } else if (rank % (2 * d) == 0) {
            CHECK_NCCL(
                ncclRecv(scratch, count, ncclFloat32, (rank + d) % nranks, comm, stream));
            add(buf, scratch, count, stream);
        }
    }
    for (int d = nranks / 2; d >= 1; d /= 2) {
        if (rank % (2 * d) == d)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - d, comm, stream));
        else if (rank % (2 * d) == 0)
            CHECK_NCCL(
                ncclSend(buf, count, ncclFloat32, (rank + d) % nranks, comm, stream));
    }
    //: wrong chain: steps one after the other
    if (rank + 1 < nranks) {
        CHECK_NCCL(ncclRecv(scratch, count, ncclFloat32, rank + 1, comm, stream));
        add(buf, scratch, count, stream);
    }
    if (rank > 0) {
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - 1, comm, stream));
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + 1, comm, stream));
    //: wrong all-to-rank-0: steps one after the other
    for (int r = 1; r < nranks; r++) {
        if (rank == r)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, 0, comm, stream));
        if (rank == 0) {
            CHECK_NCCL(ncclRecv(scratch, count, ncclFloat32, r, comm, stream));
            add(buf, scratch, count, stream);
        }
    }
    for (int r = 1; r < nranks; r++) {
        if (rank == r)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, 0, comm, stream));
        if (rank == 0)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, r, comm, stream));
    }
    //: wrong one-call: allows only
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    (void)scratch;
    //: end
}
//: check
#include <cublas_v2.h>

void add(float *buf, const float *other, size_t count, cudaStream_t stream);
void tree_sum(float *buf, float *scratch, size_t count, int rank, int nranks,
              ncclComm_t comm, cudaStream_t stream);

static cublasHandle_t blas;

void add(float *buf, const float *other, size_t count, cudaStream_t stream) {
    const float one = 1;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, other, 1, buf, 1));
}

/* A message to and fro between ranks 0 and 1, and an addition: what two steps take. */
static void two_steps(float *buf, float *scratch, size_t count) {
    for (int turn = 0; turn < 2; turn++) {
        if (check_rank == turn)
            CHECK_NCCL(
                ncclSend(buf, count, ncclFloat32, 1 - turn, check_comm, check_stream));
        if (check_rank == 1 - turn) {
            CHECK_NCCL(
                ncclRecv(scratch, count, ncclFloat32, turn, check_comm, check_stream));
            add(buf, scratch, count, check_stream);
        }
    }
}

/* On a modelled machine: a tree of 6 ranks needs at most 4 steps up and 4 down (two
 * children one after the other), a chain 5 and 5. */
static void check_steps(float *buf, float *scratch) {
    double two = 0, all = 0;
    while (check_measuring(&two))
        two_steps(buf, scratch, 1);
    while (check_measuring(&all))
        tree_sum(buf, scratch, 1, check_rank, check_nranks, check_comm, check_stream);
    check_that(all <= 3.5 * two,
               "it takes %.0f µs, and one step %.0f µs: %.0f steps one after the other",
               all * 1e6, two / 2 * 1e6, 2 * all / two);
}

void check(void) {
    const size_t counts[] = {1, 6, 1001};
    CHECK_CUBLAS(cublasCreate(&blas));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("count %zu", count);
        float *buf = check_device(bytes), *scratch = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        check_put(buf, mine, bytes);
        tree_sum(buf, scratch, count, check_rank, check_nranks, check_comm, check_stream);
        check_mistake("It is as it was: no sum has come down.", mine);
        check_buffer("buf", buf, expected, count, ncclFloat32);
        if (c == 0 && check_nranks > 4 && check_modelled())
            check_steps(buf, scratch);
    }
    CHECK_CUBLAS(cublasDestroy(blas));
}
