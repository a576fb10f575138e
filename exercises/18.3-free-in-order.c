//: kind repair
//: title Freed on the wrong stream
//: trains cudaFreeAsync: in the order of which stream?
//: ranks 2 3 | 1 4 7 8
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK:
//: learned cudaFreeAsync gives memory back in the order of its stream; work on another stream needs an event first.
//: why The stream that frees waits for an event recorded after the all-reduce, so the memory is given back after its last use.
//: hint On which stream does the last work with the buffer run, and on which is it freed?
//: hint Either free on the stream of the all-reduce, or let the other stream wait for it.
//: hint cudaEventRecord(event, summing); cudaStreamWaitEvent(housekeeping, event, 0); before cudaFreeAsync.
//: file

/*
 * "We free on a stream of its own, so that freeing holds up nothing. Now and then the
 * result is wrong."
 *
 * Repair the function. The memory must still be given back with cudaFreeAsync, and the
 * host must not wait.
 */
#include "lesson.h"

void sum_once(const float *host, float *result, size_t count, cudaStream_t summing,
              cudaStream_t housekeeping, ncclComm_t comm) {
    const size_t bytes = count * sizeof(float);
    float *buffer;
    CHECK_CUDA(cudaMallocAsync((void **)&buffer, bytes, summing));
    CHECK_CUDA(cudaMemcpyAsync(buffer, host, bytes, cudaMemcpyHostToDevice, summing));
    CHECK_NCCL(ncclAllReduce(buffer, result, count, ncclFloat32, ncclSum, comm, summing));
    //: starter
    CHECK_CUDA(cudaFreeAsync(buffer, housekeeping));
    //: solution
    cudaEvent_t last_use;
    CHECK_CUDA(cudaEventCreateWithFlags(&last_use, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(last_use, summing));
    CHECK_CUDA(cudaStreamWaitEvent(housekeeping, last_use, 0));
    CHECK_CUDA(cudaFreeAsync(buffer, housekeeping));
    CHECK_CUDA(cudaEventDestroy(last_use));
    //: wrong event-too-early: NCCL CHECK:
    cudaEvent_t last_use;
    CHECK_CUDA(cudaEventCreateWithFlags(&last_use, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(last_use, housekeeping));
    CHECK_CUDA(cudaStreamWaitEvent(housekeeping, last_use, 0));
    CHECK_CUDA(cudaFreeAsync(buffer, housekeeping));
    CHECK_CUDA(cudaEventDestroy(last_use));
    //: wrong other-way: NCCL CHECK:
    cudaEvent_t last_use;
    CHECK_CUDA(cudaEventCreateWithFlags(&last_use, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(last_use, housekeeping));
    CHECK_CUDA(cudaStreamWaitEvent(summing, last_use, 0));
    CHECK_CUDA(cudaFreeAsync(buffer, housekeeping));
    CHECK_CUDA(cudaEventDestroy(last_use));
    //: wrong never: NCCL CHECK: left behind:
    (void)housekeeping;
    //: end
    (void)housekeeping;
}
//: check
void sum_once(const float *host, float *result, size_t count, cudaStream_t summing,
              cudaStream_t housekeeping, ncclComm_t comm);

void check(void) {
    enum { COUNT = 1 << 18 };
    const size_t bytes = COUNT * sizeof(float);
    cudaStream_t housekeeping;
    CHECK_CUDA(cudaStreamCreateWithFlags(&housekeeping, cudaStreamNonBlocking));
    check_case("%d elements", COUNT);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    float *result = check_device(bytes);
    for (size_t i = 0; i < COUNT; i++) {
        mine[i] = (float)check_data(check_rank, i);
        expected[i] = 0;
        for (int r = 0; r < check_nranks; r++)
            expected[i] += (float)check_data(r, i);
    }
    sum_once(mine, result, COUNT, check_stream, housekeeping, check_comm);
    check_buffer("the result", result, expected, COUNT, ncclFloat32);
    CHECK_CUDA(cudaStreamSynchronize(housekeeping));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaStreamDestroy(housekeeping));
}
