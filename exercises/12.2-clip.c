//: kind complete
//: title The length of a gradient
//: trains a norm, when each rank has only a shard
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=1
//: starter This is the length of rank
//: wrong mean s/ncclSum/ncclAvg/: the ranks' sums should be added up
//: wrong largest s/ncclSum/ncclMax/: This is the length of the longest shard.
//: wrong bytes s/squares, 1,/squares, sizeof(float),/: NCCL CHECK: memory
//: learned A norm of sharded numbers is a local sum of squares, an all-reduce, and then the root.
//: why Squares can be added in any order, so the sums of all shards add up to the sum of the whole gradient.
//: hint What does `squares` contain after cublasSdot? What should it contain before it is copied?
//: hint All ranks need the sum over all ranks. Which collective does that?
//: hint ncclAllReduce in place, of one float, with ncclSum, before the copy.
//: file

/*
 * To limit a gradient you need its length: the square root of the sum of all its squares.
 * But each rank has only its shard of the gradient, `count` numbers. Complete the
 * function: it returns the length of the whole gradient, on every rank. `squares` is one
 * float in the GPU's memory.
 */
#include "lesson.h"

#include <cublas_v2.h>
#include <math.h>

float gradient_length(const float *shard, int count, float *squares, cublasHandle_t blas,
                      ncclComm_t comm, cudaStream_t stream) {
    // The sum of this shard's squares.
    CHECK_CUBLAS(cublasSdot(blas, count, shard, 1, shard, 1, squares));
    //: starter
    // What is missing here?
    //: solution
    CHECK_NCCL(ncclAllReduce(squares, squares, 1, ncclFloat, ncclSum, comm, stream));
    //: wrong after-the-copy
    //: end
    float sum;
    CHECK_CUDA(
        cudaMemcpyAsync(&sum, squares, sizeof sum, cudaMemcpyDeviceToHost, stream));
    //: starter
    //: solution
    //: wrong after-the-copy: This is the length of rank
    CHECK_NCCL(ncclAllReduce(squares, squares, 1, ncclFloat, ncclSum, comm, stream));
    //: end
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return sqrtf(sum);
}
//: check
#include <cublas_v2.h>
#include <math.h>

float gradient_length(const float *shard, int count, float *squares, cublasHandle_t blas,
                      ncclComm_t comm, cudaStream_t stream);

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static void check_length(int count, cublasHandle_t blas) {
    check_case("shards of %d numbers", count);
    float *shard = check_device(count * sizeof(float));
    float *mine = check_host(count * sizeof(float)), *squares = check_device(4);
    double all = 0, own = 0, longest = 0;
    for (int rank = 0; rank < check_nranks; rank++) {
        double sum = 0;
        for (int i = 0; i < count; i++) {
            // The last rank's numbers are larger, so that no two shards are equally long.
            const double x =
                check_data(rank, (size_t)i) * (rank == check_nranks - 1 ? 2 : 1);
            sum += x * x;
            if (rank == check_rank)
                mine[i] = (float)x;
        }
        own = rank == check_rank ? sum : own;
        longest = sum > longest ? sum : longest;
        all += sum;
    }
    check_put(shard, mine, count * sizeof(float));
    const double length =
        gradient_length(shard, count, squares, blas, check_comm, check_stream);
    if (near(length, sqrt(all)))
        return;
    if (near(length, sqrt(all / check_nranks)))
        check_that(false,
                   "the length is %g, expected %g: the ranks' sums should be added up",
                   length, sqrt(all));
    else if (near(length, sqrt(longest)) && !near(own, longest))
        check_that(
            false,
            "the length is %g, expected %g\n  This is the length of the longest shard.",
            length, sqrt(all));
    else if (near(length, sqrt(own)))
        check_that(
            false,
            "the length is %g, expected %g\n  This is the length of rank %d's shard.",
            length, sqrt(all), check_rank);
    else
        check_that(false, "the length is %g, expected %g", length, sqrt(all));
}

void check(void) {
    cublasHandle_t blas;
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    CHECK_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    const int counts[] = {5, 1, 300};
    for (int c = 0; c < 3; c++)
        check_length(counts[c], blas);
    CHECK_CUBLAS(cublasDestroy(blas));
}
