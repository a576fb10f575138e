//: kind build
//: title Do all ranks have the same weights?
//: instead rank 0 => rank 1 ; ncclFloat32, 0, comm => ncclFloat32, 1, comm ; 1 + f % (check_nranks - 1) => (2 + f % (check_nranks - 1)) % check_nranks
//: trains a broadcast into a second buffer
//: ranks 3 4 | 1 2 7 8
//: calls ncclBroadcast=1
//: starter says -2, expected
//: wrong in-place s/ncclBroadcast\(weights, scratch/ncclBroadcast((void *)weights, (void *)weights/: have changed
//: wrong no-wait s/Async\((\w+, \w+, bytes, cudaMemcpyDeviceToHost), stream/($1/g: NCCL CHECK: race
//: wrong last s/ && first < 0//: expected
//: wrong bytes s/i < count && first/i < bytes \/ 8 && first/: expected
//: wrong on-root s/if \(mine/if (first < 0 && mine[0] != roots[0] && mine/: expected
//: learned With two different buffers a broadcast leaves the send buffer as it is.
//: why The root's weights come into a buffer of their own, so each rank can compare them with what it has.
//: hint The send buffer is read on the root only, and the receive buffer is written on all ranks.
//: hint Broadcast from `weights` into `scratch`, wait, and copy both to the host.
//: hint Compare them from the first element on, and return the first i at which they differ.
//: file

/*
 * Before a long run you want to know that all ranks have the same weights.
 *
 * Return, on each rank, the index of the first element that differs from what rank 0 has,
 * or -1 if none does. Use one ncclBroadcast. `weights` must keep their values on all
 * ranks; `scratch` has room for as many elements.
 */
#include "lesson.h"

long first_difference(const float *weights, float *scratch, size_t count, ncclComm_t comm,
                      cudaStream_t stream) {
    //: starter
    // Yours: about ten lines.
    return -2;
    //: solution
    const size_t bytes = count * sizeof(float);
    float *mine = lesson_malloc(bytes), *roots = lesson_malloc(bytes);
    CHECK_NCCL(ncclBroadcast(weights, scratch, count, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(mine, weights, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaMemcpyAsync(roots, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    long first = -1;
    for (size_t i = 0; i < count && first < 0; i++)
        if (mine[i] != roots[i])
            first = (long)i;
    free(mine);
    free(roots);
    return first;
    //: end
}
//: check
long first_difference(const float *weights, float *scratch, size_t count, ncclComm_t comm,
                      cudaStream_t stream);

void check(void) {
    const size_t count = 403, bytes = count * sizeof(float);
    const long faults[] = {-1, 402, 5, 0, 250};
    for (int f = 0; f < 5; f++) {
        const int guilty = check_nranks > 1 ? 1 + f % (check_nranks - 1) : -1;
        check_case(faults[f] < 0 ? "all alike" : "rank %d differs from element %ld on",
                   guilty, faults[f]);
        float *weights = check_device(bytes), *scratch = check_device(bytes);
        float *mine = check_host(bytes), *now = check_host(bytes);
        const bool differs = faults[f] >= 0 && check_rank == guilty;
        for (size_t i = 0; i < count; i++)
            mine[i] = (float)check_data(0, i);
        for (size_t i = (size_t)faults[f]; differs && i < count; i += 7)
            mine[i] += 1;
        check_put(weights, mine, bytes);
        check_put(scratch, mine, bytes);
        long got = first_difference(weights, scratch, count, check_comm, check_stream);
        check_get(now, weights, bytes);
        check_that(memcmp(now, mine, bytes) == 0, "the weights have changed");
        long expected = differs ? faults[f] : -1;
        check_that(got == expected, "it says %ld, expected %ld", got, expected);
    }
}
