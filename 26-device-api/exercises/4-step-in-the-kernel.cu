// 26.4 A step in the same kernel (fast)
// make exercise N=26.4

/*
 * A step of training with few weights: an all-reduce adds up the gradients, which lie in
 * a window, and a kernel makes the step by their mean. All ranks have the same weights.
 *
 * Make it fast: at most three quarters of what it takes now. As soon as this rank's work
 * on the stream is done, the caller fills `gradient` again. Don't wait: the caller does.
 */
#include "lesson.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 256, BLOCKS = 4 };

__global__ void step(float *weight, const float *sum, size_t count, float nranks) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)blockDim.x * gridDim.x)
        weight[i] -= sum[i] / nranks;
}

/* One device communicator for all launches. */
static ncclDevComm dev;

extern "C" void begin(ncclComm_t comm) {
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = BLOCKS;
    CHECK_NCCL(ncclDevCommCreate(comm, &wanted, &dev));
}

/* `sum` is room for as many floats, if you need it. */
extern "C" void train_step(float *weight, float *gradient, ncclWindow_t window,
                           float *sum, size_t count, ncclComm_t comm,
                           cudaStream_t stream) {
    CHECK_NCCL(ncclAllReduce(gradient, sum, count, ncclFloat32, ncclSum, comm, stream));
    step<<<BLOCKS, THREADS, 0, stream>>>(weight, sum, count, (float)dev.nRanks);
    CHECK_CUDA(cudaGetLastError());
}

extern "C" void end(ncclComm_t comm) {
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
}
