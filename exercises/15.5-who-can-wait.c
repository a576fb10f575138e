//: kind fast
//: title Who can wait?
//: trains hiding the means of the columns, and not the sums of the rows
//: ranks 4 | 2 8
//: clock slow-h200
//: starter the computation alone
//: wrong no-event s/        CHECK_CUDA.cudaStreamWaitEvent.sending, event.0., 0..;\n//: was not averaged over the column
//: wrong update-too-early s/    CHECK_CUDA.cudaStreamWaitEvent.computing, event.1., 0..;\n//: NCCL CHECK: race
//: learned The sum of a row is needed at once; the means of a column can travel until the update.
//: why The next product reads the sum, so it stays in the stream that computes. Nothing reads the mean before the update.
//: hint Which of the two results does the next product read, and which one only the update?
//: hint The means can travel in the other stream. They need an event before, and the update one after.
//: hint After compute(l): record an event on computing, let sending wait for it, average_in_column(l,
//:   sending). In the end record one on sending, and let computing wait for it before the update.
//: file

/*
 * The backward pass in a grid of ranks. compute(l) makes a layer's gradient, and the
 * numbers that the next product takes. A rank of a row has only a part of each of these
 * numbers, so add_in_row(l) sums them over the row. average_in_column(l) averages the
 * gradient over the column, for the update.
 *
 * Everything waits for everything here. Make it fast: it may take at most 1.1 times as
 * long as the products and the sums of the rows alone. There is a second stream, and
 * there are two events. The caller waits for `computing`.
 */
#include "lesson.h"

/* Each queues its work for layer l. update() takes the gradients of all layers. */
void compute(int l, cudaStream_t stream);
void add_in_row(int l, cudaStream_t stream);
void average_in_column(int l, cudaStream_t stream);
void update(cudaStream_t stream);

void backward(int layers, cudaStream_t computing, cudaStream_t sending,
              const cudaEvent_t *event) {
    //: starter
    for (int l = layers - 1; l >= 0; l--) {
        compute(l, computing);
        average_in_column(l, computing);
        add_in_row(l, computing);
    }
    update(computing);
    //: solution
    for (int l = layers - 1; l >= 0; l--) {
        compute(l, computing);
        CHECK_CUDA(cudaEventRecord(event[0], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, event[0], 0));
        add_in_row(l, computing);
        average_in_column(l, sending);
    }
    CHECK_CUDA(cudaEventRecord(event[1], sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, event[1], 0));
    update(computing);
    //: wrong means-last: at most
    for (int l = layers - 1; l >= 0; l--) {
        compute(l, computing);
        add_in_row(l, computing);
    }
    for (int l = layers - 1; l >= 0; l--)
        average_in_column(l, computing);
    update(computing);
    //: wrong sums-too: NCCL CHECK: race
    for (int l = layers - 1; l >= 0; l--) {
        compute(l, computing);
        CHECK_CUDA(cudaEventRecord(event[0], computing));
        CHECK_CUDA(cudaStreamWaitEvent(sending, event[0], 0));
        add_in_row(l, sending);
        average_in_column(l, sending);
    }
    CHECK_CUDA(cudaEventRecord(event[1], sending));
    CHECK_CUDA(cudaStreamWaitEvent(computing, event[1], 0));
    update(computing);
    //: end
}
//: check
#include <cublas_v2.h>

enum { LAYERS = 8 };
static int width = 128, nsamples = 256; // larger on a real machine
static size_t layer, count;             // numbers in a layer, and between two of them
static float *weights, *gradients, *numbers[2], *matrix;
static cublasHandle_t blas;
static ncclComm_t in_row, in_column;
static int columns, rows;

void backward(int layers, cudaStream_t computing, cudaStream_t sending,
              const cudaEvent_t *event);
void compute(int l, cudaStream_t stream);
void add_in_row(int l, cudaStream_t stream);
void average_in_column(int l, cudaStream_t stream);
void update(cudaStream_t stream);

/* Of the numbers x that came, all alike: the gradient is x times one of this rank's, the
 * next numbers are x / columns, so that a row's sum is x again. */
void compute(int l, cudaStream_t stream) {
    const float none = 0, own = (float)(check_rank + 1) / (float)nsamples;
    const float share = 1.0f / (float)columns;
    const float *x = numbers[(l + 1) % 2];
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, width, nsamples, width,
                             &share, matrix, width, x, width, &none, numbers[l % 2],
                             width));
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, width, width, nsamples, &own,
                             x, width, x, width, &none, gradients + (size_t)l * layer,
                             width));
}

void add_in_row(int l, cudaStream_t stream) {
    CHECK_NCCL(ncclAllReduce(numbers[l % 2], numbers[l % 2], count, ncclFloat, ncclSum,
                             in_row, stream));
}

void average_in_column(int l, cudaStream_t stream) {
    float *gradient = gradients + (size_t)l * layer;
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, layer, ncclFloat, ncclAvg, in_column, stream));
}

void update(cudaStream_t stream) {
    const float one = 1;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(
        cublasSaxpy(blas, (int)(LAYERS * layer), &one, gradients, 1, weights, 1));
}

static float *filled(size_t n, float value, bool diagonal, float *host) {
    float *buffer = check_device(n * sizeof *buffer);
    for (size_t i = 0; i < n; i++)
        host[i] = diagonal && i % ((size_t)width + 1) != 0 ? 0 : value;
    check_put(buffer, host, n * sizeof *buffer);
    return buffer;
}

static void make_data(void) {
    float *host = check_host(LAYERS * layer * sizeof *host);
    weights = filled(LAYERS * layer, 0, false, host);
    gradients = filled(LAYERS * layer, 0, false, host);
    numbers[0] = filled(count, 1, false, host);
    numbers[1] = filled(count, 1, false, host);
    matrix = filled(layer, 1, true, host);
}

static void measure(cudaStream_t sending, const cudaEvent_t *event) {
    double alone = 0, pass = 0;
    if (!check_modelled())
        width = 4096, nsamples = 1024;
    layer = (size_t)width * (size_t)width;
    count = (size_t)width * (size_t)nsamples;
    check_case("%d layers, a grid of %d x %d", LAYERS, rows, columns);
    make_data();
    enum { STEPS = 3 };
    for (int step = 0; step < STEPS; step++)
        backward(LAYERS, check_stream, sending, event);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    float *got = check_host(LAYERS * layer * sizeof *got), expected = 0;
    check_get(got, weights, LAYERS * layer * sizeof *got);
    for (int row = 0; row < rows; row++)
        expected += (float)STEPS / (float)rows *
                    (float)(row * columns + check_rank % columns + 1);
    for (size_t i = 0; i < LAYERS * layer; i++)
        if (!check_that(
                got[i] > 0.999f * expected && got[i] < 1.001f * expected,
                "weight %zu of layer %zu is %g, expected %g: the gradient was not "
                "averaged over the column before the update",
                i % layer, i / layer, (double)got[i], (double)expected))
            break;
    while (check_measuring(&alone))
        for (int l = LAYERS - 1; l >= 0; l--) {
            compute(l, check_stream);
            add_in_row(l, check_stream);
        }
    while (check_measuring(&pass)) {
        backward(LAYERS, check_stream, sending, event);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
    }
    check_time(pass, check_modelled() ? 1.1 : 1.3, alone,
               "the computation alone with the sums of the rows");
}

void check(void) {
    cudaStream_t sending;
    cudaEvent_t event[2];
    columns = check_nranks / 2;
    rows = 2;
    const int row = check_rank / columns, column = check_rank % columns;
    CHECK_NCCL(ncclCommSplit(check_comm, row, column, &in_row, NULL));
    CHECK_NCCL(ncclCommSplit(check_comm, column, row, &in_column, NULL));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUDA(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
    measure(sending, event);
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaEventDestroy(event[i]));
    CHECK_CUDA(cudaStreamDestroy(sending));
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_NCCL(ncclCommDestroy(in_column));
    CHECK_NCCL(ncclCommDestroy(in_row));
}
