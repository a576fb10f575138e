//: kind repair
//: title A thread for each GPU
//: trains what the current device belongs to
//: setup mpi
//: ranks 1
//: run 1 CPU_DEVICES=3
//: starter NCCL CHECK: memory:
//: learned The current device belongs to a thread, and a new thread begins with device 0.
//: why With cudaSetDevice(device) first, the stream and the buffer are made on the thread's own GPU.
//: hint On which device does cudaMalloc allocate in a thread that has just begun?
//: hint The device that main has chosen is main's. What must each thread say first?
//: hint CHECK_CUDA(cudaSetDevice(device)); before the stream is made.
//: file

/*
 * "We gave each GPU a thread of its own. With one GPU all is well, with three NCCL says
 * something about memory."
 *
 * Each thread calls this function with its device and that device's communicator.
 * `values` has `count` floats on the host; they become the sum over all devices. Repair
 * it.
 */
#include "lesson.h"

void sum_of_threads(int device, ncclComm_t comm, float *values, size_t count) {
    const size_t bytes = count * sizeof(float);
    float *buffer;
    cudaStream_t stream;
    //: starter
    (void)device;
    //: solution
    CHECK_CUDA(cudaSetDevice(device));
    //: wrong device-0: NCCL CHECK: memory:
    CHECK_CUDA(cudaSetDevice(0));
    //: wrong next-device: NCCL CHECK: memory:
    int ngpus;
    CHECK_CUDA(cudaGetDeviceCount(&ngpus));
    CHECK_CUDA(cudaSetDevice((device + 1) % ngpus));
    //: wrong leaves-it-to-nccl: NCCL CHECK: memory:
    CHECK_NCCL(ncclCommCuDevice(comm, &device));
    //: end
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&buffer, bytes));
    CHECK_CUDA(cudaMemcpyAsync(buffer, values, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(values, buffer, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaFree(buffer));
    CHECK_CUDA(cudaStreamDestroy(stream));
}
//: check
#include <pthread.h>

void sum_of_threads(int device, ncclComm_t comm, float *values, size_t count);

struct one {
    int device;
    ncclComm_t comm;
    float values[100];
};

static void *run(void *argument) {
    struct one *one = argument;
    sum_of_threads(one->device, one->comm, one->values, 100);
    return NULL;
}

void check(void) {
    int ngpus;
    CHECK_CUDA(cudaGetDeviceCount(&ngpus));
    ncclComm_t comms[ngpus];
    pthread_t threads[ngpus];
    struct one *ones = calloc((size_t)ngpus, sizeof *ones);
    float expected[100] = {0};
    CHECK_NCCL(ncclCommInitAll(comms, ngpus, NULL));
    check_case("%d GPUs, %d threads", ngpus, ngpus);
    for (int d = 0; d < ngpus; d++) {
        ones[d].device = d;
        ones[d].comm = comms[d];
        for (size_t i = 0; i < 100; i++)
            expected[i] += ones[d].values[i] = (float)check_data(d, i);
    }
    for (int d = 0; d < ngpus; d++)
        pthread_create(&threads[d], NULL, run, &ones[d]);
    for (int d = 0; d < ngpus; d++)
        pthread_join(threads[d], NULL);
    for (int d = 0; d < ngpus; d++)
        check_elements("values", ones[d].values, expected, 100, ncclFloat32);
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclCommDestroy(comms[d]));
    CHECK_NCCL(ncclGroupEnd());
    free(ones);
}
