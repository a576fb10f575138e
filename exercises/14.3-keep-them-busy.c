//: kind fast
//: title Keep them all busy
//: trains neither too few micro-batches nor too many
//: ranks 4 | 1 2
//: clock slow-h200
//: starter the computation alone
//: wrong halves s/parts = 8/parts = 2/: the computation alone
//: wrong too-many s/parts = 8/parts = 64/: the computation alone
//: wrong single-samples s/parts = 8/parts = samples/: the computation alone
//: wrong same-part s/const float \*from = input \+ i \* count;/const float *from = input;/: of output is
//: learned Cut into micro-batches, a batch keeps all ranks busy; but each part costs messages and makes the products smaller.
//: why With 8 parts on 4 ranks, a rank idles for 3 of 11 pieces, and a piece still takes longer than its messages.
//: hint What does rank 3 do while rank 0 computes? How could it start earlier?
//: hint Samples are independent of one another. So a rank can pass on the first ones while it computes the next.
//: hint A loop over 8 parts: receive samples / 8, compute them, send them.
//: file

/*
 * The forward pass of a pipeline: each rank receives all samples from the previous rank,
 * computes, and sends the results to the next one. Only one rank works at a time. Make it
 * fast: on 4 ranks it may take at most 2.1 times as long as the computation of one
 * rank alone.
 *
 * A sample is `width` floats; samples follow one another in input and output. There are
 * 512 of them. The first rank has the samples in `input`, and the last keeps its
 * `output`.
 */
#include "lesson.h"

/* Queues this rank's layers for this many samples. */
void compute(const float *from, float *to, size_t samples, cudaStream_t stream);

void forward(float *input, float *output, size_t samples, size_t width, int rank,
             int nranks, ncclComm_t comm, cudaStream_t stream) {
    const int previous = rank - 1, next = rank + 1;
    //: starter
    if (previous >= 0)
        CHECK_NCCL(ncclRecv(input, samples * width, ncclFloat, previous, comm, stream));
    compute(input, output, samples, stream);
    if (next < nranks)
        CHECK_NCCL(ncclSend(output, samples * width, ncclFloat, next, comm, stream));
    //: solution
    const size_t parts = 8, part = samples / parts, count = part * width;
    for (size_t i = 0; i < parts; i++) {
        if (previous >= 0)
            CHECK_NCCL(
                ncclRecv(input + i * count, count, ncclFloat, previous, comm, stream));
        const float *from = input + i * count;
        compute(from, output + i * count, part, stream);
        if (next < nranks)
            CHECK_NCCL(
                ncclSend(output + i * count, count, ncclFloat, next, comm, stream));
    }
    //: wrong send-later: the computation alone
    const size_t parts = 8, part = samples / parts, count = part * width;
    for (size_t i = 0; i < parts; i++) {
        if (previous >= 0)
            CHECK_NCCL(
                ncclRecv(input + i * count, count, ncclFloat, previous, comm, stream));
        compute(input + i * count, output + i * count, part, stream);
    }
    for (size_t i = 0; next < nranks && i < parts; i++)
        CHECK_NCCL(ncclSend(output + i * count, count, ncclFloat, next, comm, stream));
    //: end
}
//: check
#include <cublas_v2.h>

enum { SAMPLES = 512, LAYERS = 4 };
static int width = 256; // larger on a real machine
static float *matrix, *between;
static cublasHandle_t blas;

void forward(float *input, float *output, size_t samples, size_t width, int rank,
             int nranks, ncclComm_t comm, cudaStream_t stream);
void compute(const float *from, float *to, size_t samples, cudaStream_t stream);

/* An even number of products with a matrix that exchanges the numbers of a sample; the
 * last one doubles them, too. */
void compute(const float *from, float *to, size_t samples, cudaStream_t stream) {
    const float one = 1, two = 2, none = 0;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    for (int l = 0; l < LAYERS; l++)
        CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, width, (int)samples,
                                 width, l == 0 ? &two : &one, matrix, width,
                                 l == 0       ? from
                                 : l % 2 == 1 ? between
                                              : to,
                                 width, &none, l % 2 == 1 ? to : between, width));
}

void check(void) {
    CHECK_CUBLAS(cublasCreate(&blas));
    check_case("%d samples", SAMPLES);
    if (!check_modelled())
        width = 8192;
    const size_t numbers = (size_t)width * SAMPLES, bytes = numbers * sizeof(float);
    const size_t weights = (size_t)width * (size_t)width;
    float *input = check_device(bytes), *output = check_device(bytes);
    float *host = check_host(bytes), *expected = check_host(bytes);
    matrix = check_device(weights * sizeof(float));
    between = check_device(bytes);
    memset(host, 0, bytes);
    check_put(output, host, bytes);
    check_put(between, host, bytes);
    float *exchange = check_host(weights * sizeof(float));
    memset(exchange, 0, weights * sizeof(float));
    for (size_t i = 1; i <= (size_t)width; i++)
        exchange[i * ((size_t)width - 1)] = 1;
    check_put(matrix, exchange, weights * sizeof(float));
    for (size_t i = 0; i < numbers; i++) {
        host[i] = check_rank == 0 ? (float)check_data(0, i) : 0;
        expected[i] = (float)check_data(0, i) * (float)(1 << (check_rank + 1));
    }
    check_put(input, host, bytes);
    double alone = 0, pass = 0;
    while (check_measuring(&alone))
        compute(input, output, SAMPLES, check_stream);
    check_put(input, host, bytes);
    while (check_measuring(&pass))
        forward(input, output, SAMPLES, (size_t)width, check_rank, check_nranks,
                check_comm, check_stream);
    check_buffer("output", output, expected, numbers, ncclFloat);
    check_time(pass, check_modelled() ? 2.1 : 3, alone, "the computation alone");
    CHECK_CUBLAS(cublasDestroy(blas));
}
