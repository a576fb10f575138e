//: kind repair
//: title Two lanes and one event
//: trains joining several streams again
//: ranks 2 3 | 1 4 7 8
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK: race
//: wrong last-lane-only s/CHECK_CUDA\(cudaStreamWaitEvent\(stream, done, 0\)\);/if (l == LANES - 1)\nCHECK_CUDA(cudaStreamWaitEvent(stream, done, 0));/: NCCL CHECK: race
//: wrong waits-before-recorded s/(CHECK_CUDA\(cudaEventRecord\(done, lane\[l\]\)\);)\s*(CHECK_CUDA\(cudaStreamWaitEvent\(stream, done, 0\)\);)/$2\n$1/: NCCL CHECK: race
//: wrong lanes-wait-for-caller s/cudaStreamWaitEvent\(stream, done, 0\)/cudaStreamWaitEvent(lane[l], done, 0)/: NCCL CHECK: race
//: learned An event holds one mark. Recording it again moves the mark; a stream that is to wait for several others waits once for each.
//: why Each wait is queued directly after its record, so it waits for that lane, and the next record doesn't change it.
//: hint How many lanes are there, and how many marks can one event hold?
//: hint cudaStreamWaitEvent waits for the mark that was recorded last, at the time of the call.
//: hint Move the wait of `stream` into the loop, directly after cudaEventRecord(done, lane[l]).
//: file

/*
 * Each rank sends `count` floats to the next rank and receives as many from the
 * previous one, in two halves, each in a lane (a stream with its own communicator). To
 * the caller it should look like one operation of `stream`: what the caller queues there
 * next must find all the numbers. "It does on my machine. On the cluster the first half
 * is sometimes old."
 *
 * Repair it, without waiting on the host.
 */
#include "lesson.h"

enum { LANES = 2 };

void shift(const float *sendbuf, float *recvbuf, size_t count, int next, int previous,
           const ncclComm_t *comm, const cudaStream_t *lane, cudaStream_t stream,
           cudaEvent_t begin, cudaEvent_t done) {
    CHECK_CUDA(cudaEventRecord(begin, stream));
    for (int l = 0; l < LANES; l++) {
        const size_t first = count * (size_t)l / LANES;
        const size_t part = count * (size_t)(l + 1) / LANES - first;
        CHECK_CUDA(cudaStreamWaitEvent(lane[l], begin, 0));
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclSend(sendbuf + first, part, ncclFloat32, next, comm[l], lane[l]));
        CHECK_NCCL(
            ncclRecv(recvbuf + first, part, ncclFloat32, previous, comm[l], lane[l]));
        CHECK_NCCL(ncclGroupEnd());
        CHECK_CUDA(cudaEventRecord(done, lane[l]));
        //: starter
        //: solution
        CHECK_CUDA(cudaStreamWaitEvent(stream, done, 0));
        //: end
    }
    //: starter
    CHECK_CUDA(cudaStreamWaitEvent(stream, done, 0));
    //: solution
    //: end
}
//: check
void shift(const float *sendbuf, float *recvbuf, size_t count, int next, int previous,
           const ncclComm_t *comm, const cudaStream_t *lane, cudaStream_t stream,
           cudaEvent_t begin, cudaEvent_t done);

enum { LANES = 2 };

void check(void) {
    const int n = check_nranks, next = (check_rank + 1) % n;
    const int previous = (check_rank + n - 1) % n;
    const size_t counts[] = {1001, 2, 36};
    ncclComm_t comm[LANES];
    cudaStream_t lane[LANES];
    for (int l = 0; l < LANES; l++) {
        CHECK_NCCL(ncclCommSplit(check_comm, 0, check_rank, &comm[l], NULL));
        CHECK_CUDA(cudaStreamCreateWithFlags(&lane[l], cudaStreamNonBlocking));
    }
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu elements", count);
        cudaEvent_t begin, done;
        CHECK_CUDA(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
        float *sendbuf = check_device(bytes), *recvbuf = check_device(bytes);
        float *result = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            expected[i] = (float)check_data(previous, i);
        }
        CHECK_CUDA(
            cudaMemcpyAsync(sendbuf, mine, bytes, cudaMemcpyHostToDevice, check_stream));
        shift(sendbuf, recvbuf, count, next, previous, comm, lane, check_stream, begin,
              done);
        CHECK_CUDA(cudaMemcpyAsync(result, recvbuf, bytes, cudaMemcpyDeviceToDevice,
                                   check_stream));
        check_buffer("recvbuf", result, expected, count, ncclFloat32);
        CHECK_CUDA(cudaEventDestroy(done));
        CHECK_CUDA(cudaEventDestroy(begin));
    }
    for (int l = 0; l < LANES; l++) {
        CHECK_CUDA(cudaStreamDestroy(lane[l]));
        CHECK_NCCL(ncclCommDestroy(comm[l]));
    }
}
