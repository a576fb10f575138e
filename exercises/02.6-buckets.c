//: kind fast
//: title Forty small gradients
//: trains many small all-reduces as one
//: clock h200
//: ranks 4 2 | 3 7 8
//: starter it takes … times
//: learned Many small all-reduces cost their latencies. In a group they start together. In a bucket they are one, but the copies take time.
//: why NCCL starts all calls of a group together. A bucket works, too: forty copies into it, one all-reduce, forty copies back.
//: hint Where does the time go: into bytes, or into calls?
//: hint `bucket` has room for all gradients. Copies within the GPU (cudaMemcpyDeviceToDevice) are
//:   queued on the same stream.
//: hint Copy each gradient to its place in the bucket, make one all-reduce of the bucket, copy the sums back. Or is
//:   there a way to tell NCCL about all the calls at once?
//: file

/*
 * Forty gradients, each in a buffer of its own: each must become the sum of all ranks.
 * This function makes forty all-reduces, one after another. Make it faster: it should
 * take at most 0.9 times as long. When it returns, all work may still be queued on
 * `stream`.
 *
 * Gradient g has count[g] elements. `bucket` has room for all of them together. All are
 * in the GPU's memory.
 */
#include "lesson.h"

void reduce_all(float **gradient, const size_t *count, int ngradients, float *bucket,
                ncclComm_t comm, cudaStream_t stream) {
    //: starter
    for (int g = 0; g < ngradients; g++)
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclSum,
                                 comm, stream));
    //: solution
    CHECK_NCCL(ncclGroupStart());
    for (int g = 0; g < ngradients; g++)
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclSum,
                                 comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: right bucket
    float *at = bucket;
    for (int g = 0; g < ngradients; at += count[g++])
        CHECK_CUDA(cudaMemcpyAsync(at, gradient[g], count[g] * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(bucket, bucket, (size_t)(at - bucket), ncclFloat32, ncclSum,
                             comm, stream));
    at = bucket;
    for (int g = 0; g < ngradients; at += count[g++])
        CHECK_CUDA(cudaMemcpyAsync(gradient[g], at, count[g] * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
    //: wrong waits: it takes … times
    for (int g = 0; g < ngradients; g++) {
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclSum,
                                 comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: wrong not-back: of gradient 0
    float *at = bucket;
    for (int g = 0; g < ngradients; at += count[g++])
        CHECK_CUDA(cudaMemcpyAsync(at, gradient[g], count[g] * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(bucket, bucket, (size_t)(at - bucket), ncclFloat32, ncclSum,
                             comm, stream));
    //: wrong one-place: of gradient
    for (int g = 0; g < ngradients; g++)
        CHECK_CUDA(cudaMemcpyAsync(bucket, gradient[g], count[g] * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(
        ncclAllReduce(bucket, bucket, count[0], ncclFloat32, ncclSum, comm, stream));
    for (int g = 0; g < ngradients; g++)
        CHECK_CUDA(cudaMemcpyAsync(gradient[g], bucket, count[g] * sizeof(float),
                                   cudaMemcpyDeviceToDevice, stream));
    //: end
}
//: check
void reduce_all(float **gradient, const size_t *count, int ngradients, float *bucket,
                ncclComm_t comm, cudaStream_t stream);

enum { GRADIENTS = 40 };

static void one_by_one(float **gradient, const size_t *count) {
    for (int g = 0; g < GRADIENTS; g++)
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclMax,
                                 check_comm, check_stream));
}

void check(void) {
    float *gradient[GRADIENTS], *other[GRADIENTS];
    size_t count[GRADIENTS], total = 0;
    check_case("%d gradients", GRADIENTS);
    for (int g = 0; g < GRADIENTS; g++) {
        count[g] = 200 + 13 * (size_t)(g % 7);
        const size_t bytes = count[g] * sizeof(float);
        float *mine = check_host(bytes);
        for (size_t i = 0; i < count[g]; i++)
            mine[i] = (float)check_data(check_rank, total + i);
        gradient[g] = check_device(bytes);
        other[g] = check_device(bytes);
        check_put(gradient[g], mine, bytes);
        check_put(other[g], mine, bytes);
        total += count[g];
    }
    float *bucket = check_device(total * sizeof *bucket);
    double theirs = 0, yours = 0;
    while (check_measuring(&theirs))
        one_by_one(other, count);
    reduce_all(gradient, count, GRADIENTS, bucket, check_comm, check_stream);
    size_t at = 0;
    for (int g = 0; g < GRADIENTS; at += count[g++]) {
        char name[32];
        float *expected = check_host(count[g] * sizeof *expected);
        snprintf(name, sizeof name, "gradient %d", g);
        for (size_t i = 0; i < count[g]; i++) {
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, at + i);
        }
        check_buffer(name, gradient[g], expected, count[g], ncclFloat32);
    }
    while (check_measuring(&yours))
        reduce_all(other, count, GRADIENTS, bucket, check_comm, check_stream);
    check_time(yours, 0.9, theirs, "one after another");
}
