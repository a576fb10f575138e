//: kind build
//: title Gather, compute, agree
//: trains an all-gather, local work and an all-reduce, one after the other
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllGather=1 ncclAllReduce=1
//: only ncclAllGather ncclAllReduce
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter This is what was there before
//: wrong no-mean s/    CHECK_NCCL.ncclAllReduce.*?;\n//s: This is the product of rank
//: wrong sum s/ncclAvg/ncclSum/: This is the sum
//: wrong whole-count s/whole, count,/whole, count * (size_t)nranks,/: NCCL CHECK: memory
//: wrong shard-only s/dot.whole, sample, .*?, stream/dot(shard, sample, count, mean, stream/s: as if the sample had only
//: learned Sharded weights are gathered, used, and forgotten; only the result of all ranks is combined.
//: why One stream keeps the three steps in order: the product reads the gathered weights, the all-reduce the product.
//: hint Which numbers does dot() need that this rank does not have? Which collective fetches them?
//: hint ncclAllGather takes the count of a shard, the small side. dot() takes the count of the whole.
//: hint ncclAllGather(shard, whole, count, …); dot(whole, sample, count * nranks, mean, stream);
//:   ncclAllReduce(mean, mean, 1, …) with ncclAvg. ncclCommCount says how many ranks there are.
//: file

/*
 * A model's weights are divided: each rank has `count` of them in `shard`. All shards, in
 * the order of the ranks, are the weights. Each rank has one sample, with as many numbers
 * as there are weights.
 *
 * A rank's result is the dot product of all weights and its own sample. Put the mean of
 * all ranks' results into *mean, on every rank. `whole` has room for all weights.
 * Everything is in the GPU's memory. Don't wait: the caller does.
 */
#include "lesson.h"

/* Queues the dot product of two vectors, and puts it into *result. */
void dot(const float *x, const float *y, size_t count, float *result,
         cudaStream_t stream);

void mean_result(const float *shard, size_t count, float *whole, const float *sample,
                 float *mean, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Yours: about five lines.
    //: solution
    int nranks;
    CHECK_NCCL(ncclCommCount(comm, &nranks));
    CHECK_NCCL(ncclAllGather(shard, whole, count, ncclFloat, comm, stream));
    dot(whole, sample, count * (size_t)nranks, mean, stream);
    CHECK_NCCL(ncclAllReduce(mean, mean, 1, ncclFloat, ncclAvg, comm, stream));
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

void mean_result(const float *shard, size_t count, float *whole, const float *sample,
                 float *mean, ncclComm_t comm, cudaStream_t stream);

static void check_mean(size_t count) {
    check_case("shards of %zu numbers", count);
    const size_t n = (size_t)check_nranks, all = n * count, bytes = sizeof(float);
    float *shard = check_device(count * bytes), *whole = check_device(all * bytes);
    float *sample = check_device(all * bytes), *mean = check_device(bytes);
    float *weights = check_host(all * bytes), *mine = check_host(all * bytes);
    for (size_t i = 0; i < all; i++)
        weights[i] = (float)check_data((int)(i / count), i % count);
    double sum = 0, own = 0, part = 0;
    for (size_t rank = 0; rank < n; rank++) {
        double product = 0, begin = 0;
        for (size_t i = 0; i < all; i++) {
            const float x = (float)check_data((int)(rank + n), i);
            product += (double)weights[i] * x;
            if (i < count)
                begin += (double)weights[rank * count + i] * x;
            if ((int)rank == check_rank)
                mine[i] = x;
        }
        own = (int)rank == check_rank ? product : own;
        sum += product;
        part += begin;
    }
    const float before = -1;
    check_put(mean, &before, bytes);
    check_put(shard, weights + (size_t)check_rank * count, count * bytes);
    check_put(sample, mine, all * bytes);
    mean_result(shard, count, whole, sample, mean, check_comm, check_stream);
    float got;
    check_get(&got, mean, bytes);
    const double expected = sum / (double)n, bound = 1e-5 * expected;
    const char *because = got == before ? "\n  This is what was there before."
                          : fabs(got - sum) < bound
                              ? "\n  This is the sum of all results."
                          : fabs(got - part / (double)n) < bound
                              ? "\n  It is as if the sample had only a shard's numbers."
                              : "";
    if (fabs(got - own) < bound && fabs(own - expected) >= bound)
        check_that(false,
                   "*mean is %g, expected %g\n  This is the product of rank %d alone.",
                   got, expected, check_rank);
    check_that(fabs(got - expected) < bound, "*mean is %g, expected %g%s", got, expected,
               because);
}

void check(void) {
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    const size_t counts[] = {5, 1, 200};
    for (int c = 0; c < 3; c++)
        check_mean(counts[c]);
    CHECK_CUBLAS(cublasDestroy(blas));
}
