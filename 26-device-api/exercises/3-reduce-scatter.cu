// 26.3 Reduce-scatter by loads (build)
// make exercise N=26.3

/*
 * A reduce-scatter in a kernel. `from` is a window of nranks * count floats on each rank.
 * Rank r adds up part r of all ranks, elements r * count to r * count + count - 1, and
 * stores the sums in its own `to`, which is no window.
 *
 * A rank may launch its kernel late, and may fill `from` only shortly before. And it
 * fills `from` with the next values as soon as its own kernel has ended. Load and store;
 * call NCCL for nothing but the device communicator.
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

/* One device communicator for all launches. */
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
