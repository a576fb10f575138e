//: kind fast
//: title Everybody does the same work
//: trains work between the two halves of an all-reduce
//: clock slow-h200
//: build cpu
//: ranks 4 2 | 3 7 8
//: starter it takes … times
//: learned Work on a sum belongs between the two halves: each rank does one N-th of it, and the same bytes travel.
//: why Between reduce-scatter and all-gather each rank has a part of the rows; it multiplies these, and the all-gather brings the results together.
//: hint Every rank multiplies all rows, and all get the same result. How could each do a part of the work?
//: hint An all-reduce is a reduce-scatter and an all-gather. What does each rank have between them?
//: hint ncclReduceScatter of rows / nranks rows to `sum`, multiply(sum, that many rows, to this rank's place in `result`),
//:   ncclAllGather in place.
//: file

/*
 * `gradient` has `rows` rows of WIDTH floats. This function adds up the gradients of all
 * ranks and multiplies every row of the sum by a matrix (Shampoo and K-FAC are optimizers
 * that do so). Every rank does all of the multiplying.
 *
 * Make it faster: on a modelled machine with slow arithmetic, N ranks should take at most
 * 0.4 + 1/N times as long, so 4 ranks at most 0.65 times. `sum` and `result` have `rows`
 * rows, too, and what you leave in `sum` does not matter. The number of ranks divides
 * `rows`. When the function returns, work may still be queued on `stream`.
 */
#include "lesson.h"

enum { WIDTH = 256 };

/* Queues out = in x matrix on `stream`, for this many rows. */
void multiply(const float *in, size_t rows, float *out);

void precondition(const float *gradient, float *sum, float *result, size_t rows, int rank,
                  int nranks, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    CHECK_NCCL(
        ncclAllReduce(gradient, sum, rows * WIDTH, ncclFloat32, ncclSum, comm, stream));
    multiply(sum, rows, result);
    //: solution
    const size_t part = rows / (size_t)nranks;
    float *mine = result + (size_t)rank * part * WIDTH;
    CHECK_NCCL(ncclReduceScatter(gradient, sum, part * WIDTH, ncclFloat32, ncclSum, comm,
                                 stream));
    multiply(sum, part, mine);
    CHECK_NCCL(ncclAllGather(mine, result, part * WIDTH, ncclFloat32, comm, stream));
    //: wrong on-rank-0: it takes … times
    CHECK_NCCL(
        ncclReduce(gradient, sum, rows * WIDTH, ncclFloat32, ncclSum, 0, comm, stream));
    if (rank == 0)
        multiply(sum, rows, result);
    CHECK_NCCL(ncclBroadcast(result, result, rows * WIDTH, ncclFloat32, 0, comm, stream));
    //: wrong gather-first: it takes … times
    const size_t part = rows / (size_t)nranks;
    float *mine = sum + (size_t)rank * part * WIDTH;
    CHECK_NCCL(ncclReduceScatter(gradient, mine, part * WIDTH, ncclFloat32, ncclSum, comm,
                                 stream));
    CHECK_NCCL(ncclAllGather(mine, sum, part * WIDTH, ncclFloat32, comm, stream));
    multiply(sum, rows, result);
    //: wrong no-gather: of result is 0, expected
    const size_t part = rows / (size_t)nranks;
    CHECK_NCCL(ncclReduceScatter(gradient, sum, part * WIDTH, ncclFloat32, ncclSum, comm,
                                 stream));
    multiply(sum, part, result + (size_t)rank * part * WIDTH);
    //: wrong count-of-rows: of result is
    const size_t part = rows / (size_t)nranks;
    float *mine = result + (size_t)rank * part * WIDTH;
    CHECK_NCCL(
        ncclReduceScatter(gradient, sum, part, ncclFloat32, ncclSum, comm, stream));
    multiply(sum, part, mine);
    CHECK_NCCL(ncclAllGather(mine, result, part, ncclFloat32, comm, stream));
    //: end
}
//: check
#include <cublas_v2.h>

enum { WIDTH = 256 };

void multiply(const float *in, size_t rows, float *out);
void precondition(const float *gradient, float *sum, float *result, size_t rows, int rank,
                  int nranks, ncclComm_t comm, cudaStream_t stream);

static cublasHandle_t blas;
static float *matrix;

void multiply(const float *in, size_t rows, float *out) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, WIDTH, (int)rows, WIDTH,
                             &one, matrix, WIDTH, in, WIDTH, &none, out, WIDTH));
}

static void as_it_was(const float *gradient, float *sum, float *result, size_t rows) {
    CHECK_NCCL(ncclAllReduce(gradient, sum, rows * WIDTH, ncclFloat32, ncclSum,
                             check_comm, check_stream));
    multiply(sum, rows, result);
}

/* Whole numbers, so that the sums are exact in any order: the matrix has a 1 on its
 * diagonal and a 2 above it. */
static void make_matrix(void) {
    const size_t bytes = WIDTH * WIDTH * sizeof(float);
    float *host = check_host(bytes);
    for (size_t i = 0; i < WIDTH * WIDTH; i++)
        host[i] = i % (WIDTH + 1) == 0 ? 1 : i % (WIDTH + 1) == 1 ? 2 : 0;
    matrix = check_device(bytes);
    check_put(matrix, host, bytes);
}

/* Element i of the sum over all ranks. */
static float sum_of(size_t i) {
    float all = 0;
    for (int r = 0; r < check_nranks; r++)
        all += (float)check_data(r, i);
    return all;
}

void check(void) {
    const size_t rows = 256 / (size_t)check_nranks * (size_t)check_nranks;
    const size_t count = rows * WIDTH, bytes = count * sizeof(float);
    check_case("%zu rows", rows);
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    make_matrix();
    float *gradient = check_device(bytes), *sum = check_device(bytes);
    float *result = check_device(bytes), *other = check_device(bytes);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    memset(expected, 0, bytes);
    check_put(sum, expected, bytes);
    check_put(result, expected, bytes);
    for (size_t i = 0; i < count; i++) {
        mine[i] = (float)check_data(check_rank, i);
        expected[i] = sum_of(i) + (i % WIDTH > 0 ? 2 * sum_of(i - 1) : 0);
    }
    check_put(gradient, mine, bytes);
    double theirs = 0, yours = 0;
    while (check_measuring(&theirs))
        as_it_was(gradient, sum, other, rows);
    while (check_measuring(&yours))
        precondition(gradient, sum, result, rows, check_rank, check_nranks, check_comm,
                     check_stream);
    check_buffer("result", result, expected, count, ncclFloat32);
    const double most = 0.4 + (1.0 / check_nranks);
    check_time(yours, most, theirs, "before");
    CHECK_CUBLAS(cublasDestroy(blas));
}
