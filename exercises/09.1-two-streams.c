//: kind complete
//: title Two streams, two waits
//: trains making one stream wait for another with events
//: ranks 2 3 | 1 4 7 8
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK: race
//: wrong no-way-back s/CHECK_CUDA\(cudaEventRecord\(added, adding\)\);\s*CHECK_CUDA\(cudaStreamWaitEvent\(lane, added, 0\)\);//: NCCL CHECK: race
//: wrong recorded-too-late s/(CHECK_CUDA\(cudaEventRecord\(received, lane\)\);)\s*(CHECK_CUDA\(cudaStreamWaitEvent\(adding, received, 0\)\);)/$2\n$1/: NCCL CHECK: race
//: wrong wrong-stream s/cudaEventRecord\(received, lane\)/cudaEventRecord(received, adding)/: NCCL CHECK: race
//: wrong record-before-adding s/(CHECK_CUBLAS[^;]*;)\s*(CHECK_CUDA\(cudaEventRecord\(added, adding\)\);)/$2\n$1/: NCCL CHECK: race
//: learned Record an event after the work in one stream, then make the other stream wait for it, before the work that needs it.
//: why Each wait stands between what is needed and what needs it: the addition comes after the receive, the caller's work in `lane` after the addition.
//: hint Two things must not happen too early: the addition, and what the caller queues in `lane` afterwards.
//: hint cudaEventRecord(event, stream) sets the mark after all work that is in that stream so far. It must come
//:   before the cudaStreamWaitEvent of the other stream.
//: hint After ncclGroupEnd: record `received` in `lane`, `adding` waits for it. After the addition: record `added` in
//:   `adding`, `lane` waits for it.
//: file

/*
 * One step of a ring. The messages travel in the stream `lane`, and the addition works
 * in the stream `adding` (cuBLAS has been told so). Put in the events: the addition must
 * not start before the numbers have arrived, and what the caller queues in `lane` next
 * must not start before they have been added.
 *
 * The host should wait for nothing.
 */
#include "lesson.h"
#include <cublas_v2.h>

void ring_step(const float *sendbuf, float *recvbuf, const float *mine, size_t count,
               int next, int previous, ncclComm_t comm, cudaStream_t lane,
               cublasHandle_t blas, cudaStream_t adding, cudaEvent_t received,
               cudaEvent_t added) {
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(sendbuf, count, ncclFloat32, next, comm, lane));
    CHECK_NCCL(ncclRecv(recvbuf, count, ncclFloat32, previous, comm, lane));
    CHECK_NCCL(ncclGroupEnd());
    //: starter
    // Here?
    //: solution
    CHECK_CUDA(cudaEventRecord(received, lane));
    CHECK_CUDA(cudaStreamWaitEvent(adding, received, 0));
    //: end

    // recvbuf += mine, in the stream `adding`.
    const float one = 1;
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &one, mine, 1, recvbuf, 1));
    //: starter
    // And here?
    //: solution
    CHECK_CUDA(cudaEventRecord(added, adding));
    CHECK_CUDA(cudaStreamWaitEvent(lane, added, 0));
    //: end
}
//: check
#include <cublas_v2.h>

void ring_step(const float *sendbuf, float *recvbuf, const float *mine, size_t count,
               int next, int previous, ncclComm_t comm, cudaStream_t lane,
               cublasHandle_t blas, cudaStream_t adding, cudaEvent_t received,
               cudaEvent_t added);

void check(void) {
    const int n = check_nranks, next = (check_rank + 1) % n;
    const int previous = (check_rank + n - 1) % n;
    const size_t counts[] = {1000, 1, 37};
    cublasHandle_t blas;
    cudaStream_t adding;
    CHECK_CUDA(cudaStreamCreateWithFlags(&adding, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, adding));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu elements", count);
        cudaEvent_t received, added;
        CHECK_CUDA(cudaEventCreateWithFlags(&received, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&added, cudaEventDisableTiming));
        float *sendbuf = check_device(bytes), *recvbuf = check_device(bytes);
        float *mine = check_device(bytes), *result = check_device(bytes);
        float *host = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)check_data(check_rank, i);
            expected[i] = (float)(check_data(previous, i) + check_data(check_rank, i));
        }
        check_put(sendbuf, host, bytes);
        check_put(mine, host, bytes);
        ring_step(sendbuf, recvbuf, mine, count, next, previous, check_comm, check_stream,
                  blas, adding, received, added);
        CHECK_CUDA(cudaMemcpyAsync(result, recvbuf, bytes, cudaMemcpyDeviceToDevice,
                                   check_stream));
        check_buffer("recvbuf", result, expected, count, ncclFloat32);
        CHECK_CUDA(cudaEventDestroy(added));
        CHECK_CUDA(cudaEventDestroy(received));
    }
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(adding));
}
