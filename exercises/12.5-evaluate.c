//: kind repair
//: title A look at the model
//: trains all ranks must gather, even if only one of them needs the weights
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllGather=1
//: starter NCCL CHECK: deadlock
//: wrong no-gather s/    CHECK_NCCL.ncclAllGather.*?;\n//s: The weights of the other ranks are missing.
//: wrong whole-count s/whole, count,/whole, count * (size_t)nranks,/: NCCL CHECK: memory
//: wrong shard-product s/dot.whole, sample, count . .size_t.nranks/dot(shard, sample, count/: The weights of the other ranks are missing.
//: learned With sharded weights, even a forward pass is a series of collectives: all ranks take part, whoever needs the result.
//: why All ranks give their shard to the all-gather; the if is only around the work of rank 0.
//: hint Which ranks call ncclAllGather? Which ones have something that rank 0 needs?
//: hint Rank 0 alone needs the result. But the gathering takes all ranks.
//: hint Move the all-gather before the if.
//: file

/*
 * "From time to time, rank 0 evaluates our model on a sample. Since the weights are
 * sharded, this hangs." Repair it. All ranks call this function, and the result of rank
 * 0 counts.
 *
 * Each rank has `count` of the weights in `shard`; `whole` has room for all of them, and
 * `sample` has as many numbers as there are weights.
 */
#include "lesson.h"

/* Queues the dot product of two vectors, and puts it into *result. */
void dot(const float *x, const float *y, size_t count, float *result,
         cudaStream_t stream);

void evaluate(const float *shard, size_t count, float *whole, const float *sample,
              float *result, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    if (rank == 0) {
        CHECK_NCCL(ncclAllGather(shard, whole, count, ncclFloat, comm, stream));
        dot(whole, sample, count * (size_t)nranks, result, stream);
    }
    //: solution
    CHECK_NCCL(ncclAllGather(shard, whole, count, ncclFloat, comm, stream));
    if (rank == 0)
        dot(whole, sample, count * (size_t)nranks, result, stream);
    //: wrong sends: NCCL CHECK:
    if (rank == 0) {
        CHECK_NCCL(ncclAllGather(shard, whole, count, ncclFloat, comm, stream));
        dot(whole, sample, count * (size_t)nranks, result, stream);
    } else {
        CHECK_NCCL(ncclSend(shard, count, ncclFloat, 0, comm, stream));
    }
    //: end
}
//: check
#include <cublas_v2.h>
#include <math.h>

static cublasHandle_t blas;

void dot(const float *x, const float *y, size_t count, float *result,
         cudaStream_t stream) {
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSdot(blas, (int)count, x, 1, y, 1, result));
}

void evaluate(const float *shard, size_t count, float *whole, const float *sample,
              float *result, int rank, int nranks, ncclComm_t comm, cudaStream_t stream);

static void check_evaluation(size_t count) {
    check_case("shards of %zu numbers", count);
    const size_t n = (size_t)check_nranks, all = n * count, bytes = sizeof(float);
    float *shard = check_device(count * bytes), *whole = check_device(all * bytes);
    float *sample = check_device(all * bytes), *result = check_device(bytes);
    float *weights = check_host(all * bytes), *mine = check_host(all * bytes);
    double expected = 0, part = 0;
    for (size_t i = 0; i < all; i++) {
        weights[i] = (float)check_data((int)(i / count), i % count);
        mine[i] = (float)check_data(check_nranks, i);
        expected += (double)weights[i] * mine[i];
        part = i + 1 == count ? expected : part;
    }
    const float zero = 0;
    check_put(result, &zero, bytes);
    check_put(shard, weights + (size_t)check_rank * count, count * bytes);
    check_put(sample, mine, all * bytes);
    // What an earlier evaluation may have left there.
    memcpy(mine, weights, count * bytes);
    memset(mine + count, 0, (all - count) * bytes);
    check_put(whole, mine, all * bytes);
    evaluate(shard, count, whole, sample, result, check_rank, check_nranks, check_comm,
             check_stream);
    float got;
    check_get(&got, result, bytes);
    if (check_rank == 0)
        check_that(fabs(got - expected) <= 1e-5 * expected,
                   "*result is %g, expected %g%s", (double)got, expected,
                   fabs(got - part) <= 1e-5 * part
                       ? "\n  The weights of the other ranks are missing."
                       : "");
}

void check(void) {
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    const size_t counts[] = {5, 1, 200};
    for (int c = 0; c < 3; c++)
        check_evaluation(counts[c]);
    CHECK_CUBLAS(cublasDestroy(blas));
}
