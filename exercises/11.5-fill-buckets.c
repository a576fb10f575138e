//: kind build
//: title Fill a bucket, send it
//: trains all-reducing buckets of gradients while others are computed
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=3
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of gradients is
//: wrong last-one-stays s/ \|\| l == 0//: of gradients is
//: wrong only-one-layer s/end - first\[l\], ncclFloat32/first[l + 1] - first[l], ncclFloat32/: of gradients is
//: wrong more-than s/>= least/> least/: calls ncclAllReduce 2 times for each case; the task asks for 3
//: wrong not-ready s/CHECK_CUDA\(cudaStreamWaitEvent\(sending, ready, 0\)\);//: NCCL CHECK: race
//: wrong nobody-waits s/CHECK_CUDA\(cudaStreamWaitEvent\(computing, averaged, 0\)\);//: NCCL CHECK: race
//: wrong never-emptied s/end = first\[l\];//: of gradients is
//: learned A bucket is sent when it is full, or when there are no more gradients; large enough, it saves latency, small enough, it leaves early.
//: why The layers lie one after another, so a bucket is a range of `gradients`: from its lowest layer to where the one before it began.
//: hint The gradients are computed from the last layer to the first. A bucket grows downwards: where does it end, and where
//:   does it begin now?
//: hint Keep `end`, where the current bucket ends: to begin with, first[nlayers]. After each layer, if end - first[l] >= least, or
//:   l is 0: send from first[l] to end, and the next bucket ends at first[l].
//: hint To send: record `ready` in `computing`, let `sending` wait for it, ncclAllReduce in `sending`. At the end record `averaged` in
//:   `sending`, and let `computing` wait for it.
//: file

/*
 * The backward pass of a network, with buckets. Layer l has the elements first[l] to
 * first[l + 1] - 1 of `gradients`. compute_gradient(l) queues the computing of layer l's
 * gradients in the stream `computing`; call it for each layer, from the last
 * (nlayers - 1) to the first (0).
 *
 * All gradients must become the sum over all ranks, by all-reduces in the stream
 * `sending`. Collect layers in a bucket until it has at least `least` elements, then
 * send it with one all-reduce. The last bucket may have fewer. What the caller queues
 * in `computing` next must find the sums; the host waits for nothing.
 */
#include "lesson.h"

void compute_gradient(int layer);

void backward(float *gradients, const size_t *first, int nlayers, size_t least,
              ncclComm_t comm, cudaStream_t computing, cudaStream_t sending,
              cudaEvent_t ready, cudaEvent_t averaged) {
    //: starter
    for (int l = nlayers - 1; l >= 0; l--)
        compute_gradient(l);
    //: solution
    size_t end = first[nlayers];
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        if (end - first[l] >= least || l == 0) {
            float *bucket = gradients + first[l];
            CHECK_CUDA(cudaEventRecord(ready, computing));
            CHECK_CUDA(cudaStreamWaitEvent(sending, ready, 0));
            CHECK_NCCL(ncclAllReduce(bucket, bucket, end - first[l], ncclFloat32, ncclSum,
                                     comm, sending));
            end = first[l];
        }
    }
    CHECK_CUDA(cudaEventRecord(averaged, sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, averaged, 0));
    //: end
}
//: check
#include <cublas_v2.h>

void compute_gradient(int layer);
void backward(float *gradients, const size_t *first, int nlayers, size_t least,
              ncclComm_t comm, cudaStream_t computing, cudaStream_t sending,
              cudaEvent_t ready, cudaEvent_t averaged);

enum { LAYERS = 7 };

/* With at least 10 elements in a bucket, each of them makes three: one with exactly
 * 10, one that begins with a large layer, and a last one that may not be full. With more
 * than 10 each of them makes two. */
static const size_t sizes[][LAYERS] = {
    {2, 4, 2, 1, 40, 4, 6}, {9, 1, 9, 1, 3, 3, 4}, {1, 1, 1, 4, 25, 6, 4}};

static cublasHandle_t blas;
static float *source, *gradients;
static size_t first[LAYERS + 1];

void compute_gradient(int layer) {
    const float three = 3;
    const size_t at = first[layer], count = first[layer + 1] - at;
    CHECK_CUBLAS(
        cublasSaxpy_64(blas, (int64_t)count, &three, source + at, 1, gradients + at, 1));
}

void check(void) {
    cudaStream_t sending;
    CHECK_CUDA(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    for (int c = 0; c < 3; c++) {
        const size_t scale = c == 1 ? 100 : 1, least = 10 * scale;
        for (int l = 0; l < LAYERS; l++)
            first[l + 1] = first[l] + sizes[c][l] * scale;
        const size_t count = first[LAYERS], bytes = count * sizeof(float);
        check_case("%d layers, %zu elements, at least %zu in a bucket", LAYERS, count,
                   least);
        cudaEvent_t ready, averaged;
        CHECK_CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&averaged, cudaEventDisableTiming));
        source = check_device(bytes);
        gradients = check_device(bytes);
        float *result = check_device(bytes), *mine = check_host(bytes);
        float *expected = check_host(bytes);
        memset(expected, 0, bytes);
        check_put(gradients, expected, bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++)
                expected[i] += 3 * (float)check_data(r, i);
        }
        check_put(source, mine, bytes);
        backward(gradients, first, LAYERS, least, check_comm, check_stream, sending,
                 ready, averaged);
        CHECK_CUDA(cudaMemcpyAsync(result, gradients, bytes, cudaMemcpyDeviceToDevice,
                                   check_stream));
        check_buffer("gradients", result, expected, count, ncclFloat32);
        CHECK_CUDA(cudaEventDestroy(averaged));
        CHECK_CUDA(cudaEventDestroy(ready));
    }
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(sending));
}
