// 01.2 It works on my machine (repair)
// make exercise N=01.2

/*
 * A colleague writes: "The new learning rate (how far a training step goes) comes from
 * rank 0. On my machine all ranks get it. On the cluster some go on with the old one,
 * about once in a hundred steps."
 *
 * Repair it. Every step still makes one broadcast.
 */
#include "lesson.h"

/* Gives every rank the rate of rank 0. `buf` is one float in the GPU's memory. */
float agree_on_rate(float rate, float *buf, ncclComm_t comm, cudaStream_t stream) {
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    return rate;
}
