//: kind fast
//: title Gather ahead
//: trains double buffering with two streams and events
//: ranks 2 | 1 4
//: clock slow-h200
//: starter the computation alone
//: wrong no-wait-for-the-weights s/        CHECK_CUDA.cudaStreamWaitEvent.computing, event.l % 2., 0..;\n//: NCCL CHECK: race
//: wrong place-in-use s/            CHECK_CUDA.cudaStreamWaitEvent.sending, event.2., 0..;\n//: NCCL CHECK: race
//: learned With two places, the next layer travels while this one computes; one event says it has come, another that its place is free.
//: why The gather of layer l + 1 waits for the product of layer l - 1, which used its place, and not for that of layer l.
//: hint The gather of the next layer should be queued before the product of this one, in the other stream.
//: hint Two things need an event: the product waits until its layer has come, and a gather waits
//:   until its place is free. When is the place of layer l + 1 free?
//: hint In each round: record an event on computing, let sending wait for it, gather(l + 1, …,
//:   sending), record an event there. Then let computing wait for the event of layer l, and compute.
//: file

/*
 * The forward pass of a sharded model. Each layer is gathered into one of two places and
 * then used. This is right, but slow, because nothing is computed while a layer
 * travels. Make it fast: it may take at most 1.2 times as long as the computation alone.
 *
 * There is a stream for computing and one for sending, and there are four events for you.
 * The caller waits for `computing` in the end.
 */
#include "lesson.h"

/* Queues the all-gather of a layer's weights into place 0 or 1. */
void gather(int layer, int place, cudaStream_t stream);
/* Queues the product with the layer whose weights are in this place. */
void compute(int layer, int place, cudaStream_t stream);

void forward(int layers, cudaStream_t computing, cudaStream_t sending,
             const cudaEvent_t *event) {
    //: starter
    for (int l = 0; l < layers; l++) {
        gather(l, l % 2, computing);
        compute(l, l % 2, computing);
    }
    //: solution
    gather(0, 0, sending);
    CHECK_CUDA(cudaEventRecord(event[0], sending));
    for (int l = 0; l < layers; l++) {
        // What has been computed so far used the place of layer l + 1.
        CHECK_CUDA(cudaEventRecord(event[2], computing));
        if (l + 1 < layers) {
            CHECK_CUDA(cudaStreamWaitEvent(sending, event[2], 0));
            gather(l + 1, (l + 1) % 2, sending);
            CHECK_CUDA(cudaEventRecord(event[(l + 1) % 2], sending));
        }
        CHECK_CUDA(cudaStreamWaitEvent(computing, event[l % 2], 0));
        compute(l, l % 2, computing);
    }
    //: wrong too-late: the computation alone
    gather(0, 0, sending);
    CHECK_CUDA(cudaEventRecord(event[0], sending));
    for (int l = 0; l < layers; l++) {
        CHECK_CUDA(cudaStreamWaitEvent(computing, event[l % 2], 0));
        compute(l, l % 2, computing);
        CHECK_CUDA(cudaEventRecord(event[2], computing));
        if (l + 1 < layers) {
            CHECK_CUDA(cudaStreamWaitEvent(sending, event[2], 0));
            gather(l + 1, (l + 1) % 2, sending);
            CHECK_CUDA(cudaEventRecord(event[(l + 1) % 2], sending));
        }
    }
    //: wrong not-ahead: the computation alone
    for (int l = 0; l < layers; l++) {
        CHECK_CUDA(cudaEventRecord(event[2], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, event[2], 0));
        gather(l, l % 2, sending);
        CHECK_CUDA(cudaEventRecord(event[0], sending));
        CHECK_CUDA(cudaStreamWaitEvent(computing, event[0], 0));
        compute(l, l % 2, computing);
    }
    //: end
}
//: check
#include <cublas_v2.h>

enum { LAYERS = 10 };
static int width = 128, nsamples = 256; // larger on a real machine
static size_t matrix, numbers;          // in a layer's weights, and in its result
static float *shards, *places[2], *samples, *results;
static cublasHandle_t blas;
static ncclComm_t comm;

void forward(int layers, cudaStream_t computing, cudaStream_t sending,
             const cudaEvent_t *event);
void gather(int layer, int place, cudaStream_t stream);
void compute(int layer, int place, cudaStream_t stream);

static size_t shard(void) {
    return matrix / (size_t)check_nranks;
}

void gather(int layer, int place, cudaStream_t stream) {
    CHECK_NCCL(ncclAllGather(shards + (size_t)layer * shard(), places[place], shard(),
                             ncclFloat, comm, stream));
}

void compute(int layer, int place, cudaStream_t stream) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, width, nsamples, width, &one,
                             places[place], width, samples, width, &none,
                             results + (size_t)layer * numbers, width));
}

/* Each rank's part of a layer's weights is filled with one number. */
static int weight(int layer, int rank) {
    return (layer * 5 + rank * 3) % 7 + 1;
}

static void make_data(void) {
    const size_t most = LAYERS * (matrix > numbers ? matrix : numbers);
    float *host = check_host(most * sizeof(float));
    shards = check_device(LAYERS * shard() * sizeof(float));
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < shard(); i++)
            host[(size_t)l * shard() + i] = (float)weight(l, check_rank);
    check_put(shards, host, LAYERS * shard() * sizeof(float));
    samples = check_device(numbers * sizeof(float));
    for (size_t i = 0; i < numbers; i++)
        host[i] = 1;
    check_put(samples, host, numbers * sizeof(float));
    memset(host, 0, LAYERS * numbers * sizeof(float));
    results = check_device(LAYERS * numbers * sizeof(float));
    check_put(results, host, LAYERS * numbers * sizeof(float));
    for (int place = 0; place < 2; place++) {
        places[place] = check_device(matrix * sizeof(float));
        check_put(places[place], host, matrix * sizeof(float));
    }
}

static void check_results(void) {
    float *got = check_host(LAYERS * numbers * sizeof(float));
    check_get(got, results, LAYERS * numbers * sizeof(float));
    for (int l = 0; l < LAYERS; l++) {
        float expected = 0;
        for (int rank = 0; rank < check_nranks; rank++)
            expected += (float)(width / check_nranks * weight(l, rank));
        for (size_t i = 0; i < numbers; i++)
            if (!check_that(got[(size_t)l * numbers + i] == expected,
                            "number %zu of the result of layer %d is %g, expected %g", i,
                            l, got[(size_t)l * numbers + i], expected))
                return;
    }
}

void check(void) {
    cudaStream_t sending;
    cudaEvent_t event[4];
    // So NCCL leaves the products as many multiprocessors as their blocks need.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 4;
    CHECK_NCCL(ncclCommSplit(check_comm, 0, check_rank, &comm, &config));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUDA(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking));
    for (int i = 0; i < 4; i++)
        CHECK_CUDA(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
    if (!check_modelled())
        width = 4096, nsamples = 1024;
    matrix = (size_t)width * (size_t)width;
    numbers = (size_t)width * (size_t)nsamples;
    check_case("%d layers of %d x %d weights", LAYERS, width, width);
    make_data();
    double alone = 0, step = 0;
    while (check_measuring(&alone))
        for (int l = 0; l < LAYERS; l++)
            compute(l, l % 2, check_stream);
    while (check_measuring(&step)) {
        forward(LAYERS, check_stream, sending, event);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
    }
    check_results();
    check_time(step, check_modelled() ? 1.2 : 1.5, alone, "the computation alone");
    for (int i = 0; i < 4; i++)
        CHECK_CUDA(cudaEventDestroy(event[i]));
    CHECK_CUDA(cudaStreamDestroy(sending));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_CUBLAS(cublasDestroy(blas));
}
