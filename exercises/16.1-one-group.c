//: kind complete
//: title One thread, all GPUs
//: trains ncclGroupStart and ncclGroupEnd around the calls of one thread
//: setup mpi
//: ranks 1
//: run 1 CPU_DEVICES=4
//: run 1 CPU_DEVICES=3
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of the buffer of GPU 0 is …, expected
//: learned A thread that calls for several GPUs puts the calls into a group: NCCL starts them together at its end.
//: why Each communicator knows its device, so the calls need no cudaSetDevice; the group keeps the first call from waiting for the second.
//: hint Every GPU is a rank, so every communicator needs its call. How many calls does this thread make?
//: hint The first call may wait for the others, which the same thread makes later. What starts them together?
//: hint CHECK_NCCL(ncclGroupStart()); then the loop with ncclAllReduce(bufs[d], bufs[d], …, comms[d], streams[d]); then CHECK_NCCL(ncclGroupEnd());
//: file

/*
 * One process has `ngpus` GPUs, a communicator, a stream and a buffer of `count` floats
 * for each. Sum the buffers over all GPUs, in place, with one ncclAllReduce for each GPU.
 * Don't wait: the caller does.
 */
#include "lesson.h"

void sum(int ngpus, float *const *bufs, size_t count, const ncclComm_t *comms,
         const cudaStream_t *streams) {
    //: starter
    // Your calls.
    //: solution
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclAllReduce(bufs[d], bufs[d], count, ncclFloat32, ncclSum, comms[d],
                                 streams[d]));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong no-group: A thread that calls NCCL for several devices puts the
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclAllReduce(bufs[d], bufs[d], count, ncclFloat32, ncclSum, comms[d],
                                 streams[d]));
    //: wrong first-only: NCCL CHECK:
    CHECK_NCCL(ncclAllReduce(bufs[0], bufs[0], count, ncclFloat32, ncclSum, comms[0],
                             streams[0]));
    //: wrong one-stream: NCCL CHECK:
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclAllReduce(bufs[0], bufs[d], count, ncclFloat32, ncclSum, comms[d],
                                 streams[d]));
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void sum(int ngpus, float *const *bufs, size_t count, const ncclComm_t *comms,
         const cudaStream_t *streams);

void check(void) {
    int ngpus;
    CHECK_CUDA(cudaGetDeviceCount(&ngpus));
    ncclComm_t comms[ngpus];
    cudaStream_t streams[ngpus];
    CHECK_NCCL(ncclCommInitAll(comms, ngpus, NULL));
    for (int d = 0; d < ngpus; d++) {
        CHECK_CUDA(cudaSetDevice(d));
        CHECK_CUDA(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
    }
    const size_t counts[] = {5, 1000};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%d GPUs, %zu elements", ngpus, count);
        float *bufs[ngpus], *expected = check_host(bytes), *mine = check_host(bytes);
        memset(expected, 0, bytes);
        for (int d = 0; d < ngpus; d++) {
            CHECK_CUDA(cudaSetDevice(d));
            bufs[d] = check_device(bytes);
            for (size_t i = 0; i < count; i++)
                expected[i] += mine[i] = (float)check_data(d, i);
            check_put(bufs[d], mine, bytes);
        }
        sum(ngpus, bufs, count, comms, streams);
        for (int d = 0; d < ngpus; d++)
            CHECK_CUDA(cudaStreamSynchronize(streams[d]));
        for (int d = 0; d < ngpus && ngpus > 1; d++) {
            char name[32];
            snprintf(name, sizeof name, "the buffer of GPU %d", d);
            CHECK_CUDA(cudaSetDevice(d));
            check_buffer(name, bufs[d], expected, count, ncclFloat32);
        }
    }
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclCommDestroy(comms[d]));
    CHECK_NCCL(ncclGroupEnd());
    for (int d = 0; d < ngpus; d++)
        CHECK_CUDA(cudaStreamDestroy(streams[d]));
}
