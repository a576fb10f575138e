//: kind fast
//: title A group for everything
//: trains what is launched once, and what many times
//: setup mpi
//: ranks 1
//: run 1 CPU_DEVICES=4
//: clock h200
//: build cpu
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter it takes … times
//: learned A group may hold the calls of many tensors and of all GPUs: it costs little more than one call.
//: why All calls of all tensors are in one group, so NCCL launches once for each GPU.
//: hint How many groups does the program make?
//: hint A group may hold several calls for the same GPU, too.
//: hint Move ncclGroupStart before the outer loop, and ncclGroupEnd after it.
//: file

/*
 * One process has `ngpus` GPUs, and `ntensors` small tensors on each: tensor t of GPU d
 * is bufs[d][t], with `count` floats. Each tensor is summed over the GPUs, in place.
 *
 * Make it fast: at most 0.4 times as long as this takes now. Don't wait: the caller does.
 */
#include "lesson.h"

void sum_tensors(int ngpus, int ntensors, float *const *const *bufs, size_t count,
                 const ncclComm_t *comms, const cudaStream_t *streams) {
    //: starter
    for (int t = 0; t < ntensors; t++) {
        CHECK_NCCL(ncclGroupStart());
        for (int d = 0; d < ngpus; d++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], count, ncclFloat32, ncclSum,
                                     comms[d], streams[d]));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: solution
    CHECK_NCCL(ncclGroupStart());
    for (int t = 0; t < ntensors; t++)
        for (int d = 0; d < ngpus; d++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], count, ncclFloat32, ncclSum,
                                     comms[d], streams[d]));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong group-of-gpu: NCCL CHECK:
    for (int d = 0; d < ngpus; d++) {
        CHECK_NCCL(ncclGroupStart());
        for (int t = 0; t < ntensors; t++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], count, ncclFloat32, ncclSum,
                                     comms[d], streams[d]));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: wrong first-tensor: of tensor
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclAllReduce(bufs[d][0], bufs[d][0], count, ncclFloat32, ncclSum,
                                 comms[d], streams[d]));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong not-ended: NCCL CHECK: setup: a group was started and not ended
    CHECK_NCCL(ncclGroupStart());
    for (int t = 0; t < ntensors; t++)
        for (int d = 0; d < ngpus; d++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], count, ncclFloat32, ncclSum,
                                     comms[d], streams[d]));
    //: end
}
//: check
void sum_tensors(int ngpus, int ntensors, float *const *const *bufs, size_t count,
                 const ncclComm_t *comms, const cudaStream_t *streams);

enum { TENSORS = 12, ELEMENTS = 50 };

static void one_by_one(int ngpus, float *const *const *bufs, const ncclComm_t *comms,
                       const cudaStream_t *streams) {
    for (int t = 0; t < TENSORS; t++) {
        CHECK_NCCL(ncclGroupStart());
        for (int d = 0; d < ngpus; d++)
            CHECK_NCCL(ncclAllReduce(bufs[d][t], bufs[d][t], ELEMENTS, ncclFloat32,
                                     ncclSum, comms[d], streams[d]));
        CHECK_NCCL(ncclGroupEnd());
    }
}

void check(void) {
    int ngpus;
    CHECK_CUDA(cudaGetDeviceCount(&ngpus));
    ncclComm_t comms[ngpus];
    cudaStream_t streams[ngpus];
    CHECK_NCCL(ncclCommInitAll(comms, ngpus, NULL));
    check_case("%d GPU%s, %d tensors", ngpus, ngpus == 1 ? "" : "s", TENSORS);
    float *yours[ngpus][TENSORS], *ours[ngpus][TENSORS];
    float **your_rows[ngpus], **our_rows[ngpus];
    float expected[TENSORS][ELEMENTS] = {{0}}, mine[ELEMENTS];
    for (int d = 0; d < ngpus; d++) {
        CHECK_CUDA(cudaSetDevice(d));
        CHECK_CUDA(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
        your_rows[d] = yours[d];
        our_rows[d] = ours[d];
        for (int t = 0; t < TENSORS; t++) {
            yours[d][t] = check_device(sizeof mine);
            ours[d][t] = check_device(sizeof mine);
            for (size_t i = 0; i < ELEMENTS; i++)
                expected[t][i] += mine[i] = (float)check_data(d + 10 * t, i);
            check_put(yours[d][t], mine, sizeof mine);
            check_put(ours[d][t], mine, sizeof mine);
        }
    }
    double before = 0, now = 0;
    while (check_measuring(&before)) {
        one_by_one(ngpus, (float *const *const *)our_rows, comms, streams);
        for (int d = 0; d < ngpus; d++)
            CHECK_CUDA(cudaStreamSynchronize(streams[d]));
    }
    while (check_measuring(&now)) {
        sum_tensors(ngpus, TENSORS, (float *const *const *)your_rows, ELEMENTS, comms,
                    streams);
        for (int d = 0; d < ngpus; d++)
            CHECK_CUDA(cudaStreamSynchronize(streams[d]));
    }
    for (int d = 0; d < ngpus && ngpus > 1; d++)
        for (int t = 0; t < TENSORS; t++) {
            char name[48];
            snprintf(name, sizeof name, "tensor %d of GPU %d", t, d);
            CHECK_CUDA(cudaSetDevice(d));
            check_buffer(name, yours[d][t], expected[t], ELEMENTS, ncclFloat32);
        }
    check_time(now, 0.4, before, "before");
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclCommDestroy(comms[d]));
    CHECK_NCCL(ncclGroupEnd());
    for (int d = 0; d < ngpus; d++)
        CHECK_CUDA(cudaStreamDestroy(streams[d]));
}
