//: kind fast
//: title Hide the all-reduces
//: trains communication beside computing
//: clock slow-h200
//: build cpu
//: ranks 4 | 2 3 8
//: seconds 20
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter it takes … times
//: learned An all-reduce beside the products of other layers costs little; only the last one has nothing to hide behind.
//: why Each all-reduce starts when its gradient is ready, in a stream of its own, while the next products run; at the end `computing` waits for the last one.
//: hint While an all-reduce runs in `computing`, no product does. Which stream has nothing to do?
//: hint The gradient of layer 4 is ready long before that of layer 0. When can its all-reduce start?
//: hint After compute_gradient(l): record `ready[l]` in `computing`, let `sending` wait for it, all-reduce in `sending`. At
//:   the end record an event in `sending`, and let `computing` wait for it.
//: file

/*
 * The backward pass computes the gradients of all layers, from the last to the first,
 * and adds each up over all ranks. Make it faster: it should take at most 1.05 times as
 * long as the computing alone, on a modelled machine.
 *
 * Both streams are the caller's. What the caller queues in `computing` next must find
 * the sums. The events may be used for anything. The host should not wait.
 */
#include "lesson.h"

/* Each of them queues a product in `computing`: the gradient of a layer, and what the
 * layer before it needs for its own. */
void compute_gradient(int layer);
void compute_input(int layer);

void backward(float **gradient, size_t count, int nlayers, ncclComm_t comm,
              cudaStream_t computing, cudaStream_t sending, cudaEvent_t *ready,
              cudaEvent_t done) {
    //: starter
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, computing));
        if (l > 0)
            compute_input(l);
    }
    //: solution
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_CUDA(cudaEventRecord(ready[l], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, ready[l], 0));
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
        if (l > 0)
            compute_input(l);
    }
    CHECK_CUDA(cudaEventRecord(done, sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, done, 0));
    //: wrong all-at-the-end: it takes … times
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        if (l > 0)
            compute_input(l);
    }
    CHECK_CUDA(cudaEventRecord(ready[0], computing));
    CHECK_CUDA(cudaStreamWaitEvent(sending, ready[0], 0));
    for (int l = nlayers - 1; l >= 0; l--)
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
    CHECK_CUDA(cudaEventRecord(done, sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, done, 0));
    //: wrong waits-for-each: it takes … times
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_CUDA(cudaEventRecord(ready[l], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, ready[l], 0));
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
        CHECK_CUDA(cudaEventRecord(done, sending));
        CHECK_CUDA(cudaStreamWaitEvent(computing, done, 0));
        if (l > 0)
            compute_input(l);
    }
    //: wrong host-waits: it takes … times
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_CUDA(cudaStreamSynchronize(computing));
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
        if (l > 0)
            compute_input(l);
    }
    CHECK_CUDA(cudaEventRecord(done, sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, done, 0));
    //: wrong not-ready: NCCL CHECK: race
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
        if (l > 0)
            compute_input(l);
    }
    CHECK_CUDA(cudaEventRecord(done, sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, done, 0));
    //: wrong nobody-waits: NCCL CHECK: race
    for (int l = nlayers - 1; l >= 0; l--) {
        compute_gradient(l);
        CHECK_CUDA(cudaEventRecord(ready[l], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, ready[l], 0));
        CHECK_NCCL(ncclAllReduce(gradient[l], gradient[l], count, ncclFloat32, ncclSum,
                                 comm, sending));
        if (l > 0)
            compute_input(l);
    }
    //: end
}
//: check
#include <cublas_v2.h>

enum { LAYERS = 5, WIDTH = 128, SAMPLES = 1024 };

void compute_gradient(int layer);
void compute_input(int layer);
void backward(float **gradient, size_t count, int nlayers, ncclComm_t comm,
              cudaStream_t computing, cudaStream_t sending, cudaEvent_t *ready,
              cudaEvent_t done);

static cublasHandle_t blas;
static float *gradients[LAYERS], *x, *dy, *dx, *weight;

void compute_gradient(int layer) {
    const float factor = (float)(layer + 1), none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, WIDTH, WIDTH, SAMPLES,
                             &factor, dy, WIDTH, x, WIDTH, &none, gradients[layer],
                             WIDTH));
}

void compute_input(int layer) {
    const float factor = (float)layer, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, WIDTH, SAMPLES, WIDTH,
                             &factor, weight, WIDTH, dy, WIDTH, &none, dx, WIDTH));
}

/* Only the first sample is not 0: so anybody can say what the gradients are. */
static float *samples(bool mine) {
    const size_t bytes = SAMPLES * WIDTH * sizeof(float);
    float *host = check_host(bytes), *device = check_device(bytes);
    memset(host, 0, bytes);
    for (size_t i = 0; i < WIDTH; i++)
        host[i] = mine ? (float)check_data(check_rank, i) : (float)(i % 8 + 1);
    check_put(device, host, bytes);
    return device;
}

static void make_layers(void) {
    x = samples(false);
    dy = samples(true);
    dx = samples(false);
    weight = samples(false);
    for (int l = 0; l < LAYERS; l++)
        gradients[l] = check_device(WIDTH * WIDTH * sizeof(float));
}

void check(void) {
    const size_t count = WIDTH * WIDTH, bytes = count * sizeof(float);
    cudaStream_t sending;
    cudaEvent_t ready[LAYERS], done;
    ncclComm_t comm;
    // So NCCL leaves the products as many multiprocessors as their blocks need.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 4;
    CHECK_NCCL(ncclCommSplit(check_comm, 0, check_rank, &comm, &config));
    check_case("%d layers of %d x %d", LAYERS, WIDTH, WIDTH);
    CHECK_CUDA(cudaStreamCreateWithPriority(&sending, cudaStreamNonBlocking, -5));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    CHECK_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int l = 0; l < LAYERS; l++)
        CHECK_CUDA(cudaEventCreateWithFlags(&ready[l], cudaEventDisableTiming));
    make_layers();
    float *result = check_device(bytes);
    double alone = 0, step = 0;
    while (check_measuring(&alone))
        for (int l = LAYERS - 1; l >= 0; l--) {
            compute_gradient(l);
            if (l > 0)
                compute_input(l);
        }
    while (check_measuring(&step))
        backward(gradients, count, LAYERS, comm, check_stream, sending, ready, done);
    // Once more, and the caller goes on at once.
    backward(gradients, count, LAYERS, comm, check_stream, sending, ready, done);
    for (int l = LAYERS - 1; l >= 0; l--) {
        char name[32];
        float *expected = check_host(bytes);
        snprintf(name, sizeof name, "gradient %d", l);
        for (size_t i = 0; i < count; i++) {
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)(l + 1) * (float)check_data(r, i % WIDTH) *
                               (float)(i / WIDTH % 8 + 1);
        }
        CHECK_CUDA(cudaMemcpyAsync(result, gradients[l], bytes, cudaMemcpyDeviceToDevice,
                                   check_stream));
        check_buffer(name, result, expected, count, ncclFloat32);
    }
    check_time(step, 1.05, alone, "the computing alone");
    for (int l = 0; l < LAYERS; l++)
        CHECK_CUDA(cudaEventDestroy(ready[l]));
    CHECK_CUDA(cudaEventDestroy(done));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(sending));
}
