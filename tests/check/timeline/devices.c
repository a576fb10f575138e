/* One process with all devices, without MPI: a group of an all-reduce on each. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8, N = 1000 };

#define CHECK(call)                                \
    do {                                           \
        if ((call) != 0) {                         \
            fprintf(stderr, "%s failed\n", #call); \
            exit(1);                               \
        }                                          \
    } while (0)

int main(void) {
    int n;
    ncclComm_t comms[MOST];
    cudaStream_t streams[MOST];
    float *buffers[MOST];
    CHECK(cudaGetDeviceCount(&n));
    CHECK(ncclCommInitAll(comms, n, NULL));
    for (int d = 0; d < n; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamCreate(&streams[d]));
        CHECK(cudaMalloc((void **)&buffers[d], N * sizeof *buffers[d]));
        CHECK(cudaMemsetAsync(buffers[d], 0, N * sizeof *buffers[d], streams[d]));
    }
    CHECK(ncclGroupStart());
    for (int d = 0; d < n; d++)
        CHECK(ncclAllReduce(buffers[d], buffers[d], N, ncclFloat32, ncclSum, comms[d],
                            streams[d]));
    CHECK(ncclGroupEnd());
    for (int d = 0; d < n; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamSynchronize(streams[d]));
        CHECK(cudaFree(buffers[d]));
        CHECK(cudaStreamDestroy(streams[d]));
        CHECK(ncclCommDestroy(comms[d]));
    }
    return 0;
}
