// 26.3 Reduce-scatter by loads (build)
// make exercise N=26.3

/*
 * A reduce-scatter in a kernel. `from` is a window of nranks * count floats on each rank.
 * Rank r gets the sums over all ranks of block r, elements r * count to r * count +
 * count - 1, into its own `to`, which is no window.
 *
 * A rank may be late: its values are in place when its kernel starts. And the caller
 * fills `from` anew as soon as this rank's kernel has ended. Load and store; call NCCL
 * for nothing but the device communicator.
 */
#include "lesson.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 128, BLOCKS = 4 };

__global__ void reduce_scatter(ncclWindow_t from, float *to, size_t count,
                               ncclDevComm dev) {
    // Your kernel. It runs with BLOCKS blocks, whatever the count.
}

/* The device communicator is made once. */
static ncclDevComm dev;

extern "C" void begin(ncclComm_t comm) {
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = BLOCKS;
    CHECK_NCCL(ncclDevCommCreate(comm, &wanted, &dev));
}

extern "C" void sums(ncclWindow_t from, float *to, size_t count, cudaStream_t stream) {
    reduce_scatter<<<BLOCKS, THREADS, 0, stream>>>(from, to, count, dev);
    CHECK_CUDA(cudaGetLastError());
}

extern "C" void end(ncclComm_t comm) {
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
}
