//: kind complete
//: title Ready, and averaged
//: trains the two events of an all-reduce in a second stream
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=1
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK: race
//: wrong not-ready s/CHECK_CUDA\(cudaStreamWaitEvent\(sending, ready, 0\)\);//: NCCL CHECK: race
//: wrong ready-in-sending s/cudaEventRecord\(ready, computing\)/cudaEventRecord(ready, sending)/: NCCL CHECK: race
//: wrong averaged-in-computing s/cudaEventRecord\(averaged, sending\)/cudaEventRecord(averaged, computing)/: NCCL CHECK: race
//: wrong averaged-too-early s/(CHECK_NCCL\(\s*ncclAllReduce[^;]*;)\s*(CHECK_CUDA\(cudaEventRecord\(averaged, sending\)\);)/$2\n$1/: NCCL CHECK: race
//: wrong host-waits s/CHECK_CUDA\(cudaEventRecord\(ready, computing\)\);\s*CHECK_CUDA\(cudaStreamWaitEvent\(sending, ready, 0\)\);/CHECK_CUDA(cudaStreamSynchronize(computing));/: the task does without
//: wrong computing-waits s/(CHECK_CUDA.cudaEventRecord.averaged, sending..;)/$1\nCHECK_CUDA(cudaStreamWaitEvent(computing, averaged, 0));/: `computing` waits for the all-reduce
//: wrong host-waits-for-sums s/(CHECK_CUDA.cudaEventRecord.averaged, sending..;)/$1\nCHECK_CUDA(cudaStreamSynchronize(sending));/: the task does without
//: learned An all-reduce in a second stream needs two events: it must not start before the gradient is ready, and nobody may use it before it is averaged.
//: why `ready` is recorded where the gradient was computed, `averaged` where it was averaged, and each time the other stream waits.
//: hint In which stream is the gradient computed? The first event marks the end of that work.
//: hint Record `ready` in `computing`, and let `sending` wait for it, before the all-reduce. The caller waits for `averaged`.
//: hint cudaEventRecord(ready, computing); cudaStreamWaitEvent(sending, ready, 0); the all-reduce; cudaEventRecord(averaged,
//:   sending).
//: file

/*
 * The caller has queued work in the stream `computing` that computes `gradient`. Queue
 * an all-reduce of it, in place, in the stream `sending`, and put in the events:
 *
 * - the all-reduce must not start before the gradient is computed (`ready`);
 * - later the caller lets `computing` wait for the event `averaged`, before it uses the
 *   gradient. So record that event.
 *
 * `computing` should go on without waiting, and so should the host.
 */
#include "lesson.h"

void send_gradient(float *gradient, size_t count, ncclComm_t comm, cudaStream_t computing,
                   cudaStream_t sending, cudaEvent_t ready, cudaEvent_t averaged) {
    //: starter
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, sending));
    //: solution
    CHECK_CUDA(cudaEventRecord(ready, computing));
    CHECK_CUDA(cudaStreamWaitEvent(sending, ready, 0));
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, sending));
    CHECK_CUDA(cudaEventRecord(averaged, sending));
    //: end
}
//: check
#include <cublas_v2.h>
#include <stdatomic.h>

void send_gradient(float *gradient, size_t count, ncclComm_t comm, cudaStream_t computing,
                   cudaStream_t sending, cudaEvent_t ready, cudaEvent_t averaged);

static atomic_bool go_on;

/* Holds `sending` up, until it has been seen what does not wait for it: five seconds in
 * all for an answer that waits on the host. */
static void CUDART_CB hold(void *unused) {
    (void)unused;
    static int patience = 5000;
    for (; patience > 0 && !go_on; patience--)
        lesson_pause(0.001);
}

/* Whether all that is queued in a stream is done soon. */
static bool done_soon(cudaStream_t stream) {
    const double end = MPI_Wtime() + 3;
    while (cudaStreamQuery(stream) == cudaErrorNotReady && MPI_Wtime() < end)
        lesson_pause(0.001);
    return cudaStreamQuery(stream) == cudaSuccess;
}

void check(void) {
    const size_t counts[] = {1000, 1, 77};
    const float three = 3, one = 1;
    cublasHandle_t blas;
    cudaStream_t sending;
    CHECK_CUDA(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu gradients", count);
        cudaEvent_t ready, averaged;
        CHECK_CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&averaged, cudaEventDisableTiming));
        float *gradient = check_device(bytes), *weights = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        memset(expected, 0, bytes);
        check_put(weights, expected, bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++)
                expected[i] += 3 * (float)check_data(r, i);
        }
        check_put(gradient, mine, bytes);
        CHECK_CUBLAS(cublasSscal_64(blas, (int64_t)count, &three, gradient, 1));
        go_on = false;
        CHECK_CUDA(cudaLaunchHostFunc(sending, hold, NULL));
        send_gradient(gradient, count, check_comm, check_stream, sending, ready,
                      averaged);
        check_that(done_soon(check_stream),
                   "`computing` waits for the all-reduce: what the caller queues there "
                   "next should not");
        go_on = true;
        CHECK_CUDA(cudaStreamWaitEvent(check_stream, averaged, 0));
        CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &one, gradient, 1, weights, 1));
        check_buffer("the weights", weights, expected, count, ncclFloat32);
        CHECK_CUDA(cudaEventDestroy(averaged));
        CHECK_CUDA(cudaEventDestroy(ready));
    }
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(sending));
}
