/*
 * cuBLAS's calls against sums made one by one in double precision: every shape,
 * transposed or not, with distances of all kinds; what must not be read or written;
 * pointer modes, order in the stream, graphs, error codes.
 */
#define TAP_ALONE
#include "tap.h"

#include <cublas_v2.h>
#include <math.h>

#define BLAS_IS(wanted, call) is_status(call, wanted, #call, __LINE__)
#define BLAS(call) BLAS_IS(CUBLAS_STATUS_SUCCESS, call)

static void is_status(cublasStatus_t got, cublasStatus_t wanted, const char *call,
                      int line) {
    expect(got == wanted, "line %d: %s returned %s", line, call,
           cublasGetStatusName(got));
}

enum { ROOM = 1 << 18 };
static float host[3][ROOM], got[ROOM], again[ROOM];
static float *device[3]; // A, B, C; or x, y
static cublasHandle_t handle;
static cudaStream_t stream;

static unsigned state = 1;
static float number(void) {
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 16 & 0xfff) - 2048) / 1024;
}

static void upload(int which, size_t n) {
    CUDA(cudaMemcpyAsync(device[which], host[which], n * sizeof(float),
                         cudaMemcpyHostToDevice, stream));
}

static void download(float *to, int which, size_t n) {
    CUDA(cudaMemcpyAsync(to, device[which], n * sizeof(float), cudaMemcpyDeviceToHost,
                         stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void fill(int which, size_t n) {
    for (size_t i = 0; i < n; i++)
        host[which][i] = number();
    upload(which, n);
}

/* Element (i, j) of a matrix, or of it transposed. */
static double element(const float *at, cublasOperation_t op, int ld, int i, int j) {
    return op == CUBLAS_OP_N ? at[i + j * ld] : at[j + i * ld];
}

/* One product; every element of C, and those between its columns, which stay. */
static void product(cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
                    int more, float alpha, float beta) {
    const int lda = (opa == CUBLAS_OP_N ? m : k) + more,
              ldb = (opb == CUBLAS_OP_N ? k : n);
    const int ldc = m + 2 * more;
    fill(0, (size_t)lda * (size_t)(opa == CUBLAS_OP_N ? k : m));
    fill(1, (size_t)ldb * (size_t)(opb == CUBLAS_OP_N ? n : k));
    for (int i = 0; i < ldc * n; i++)
        host[2][i] = beta == 0 ? NAN : number(); // what is not read may be anything
    upload(2, (size_t)ldc * (size_t)n);
    BLAS(cublasSgemm(handle, opa, opb, m, n, k, &alpha, device[0], lda, device[1], ldb,
                     &beta, device[2], ldc));
    alpha = beta = NAN; // they were read by the call
    download(got, 2, (size_t)ldc * (size_t)n);
}

static void check_product(cublasOperation_t opa, cublasOperation_t opb, int m, int n,
                          int k, int more, float alpha, float beta) {
    const int lda = (opa == CUBLAS_OP_N ? m : k) + more,
              ldb = (opb == CUBLAS_OP_N ? k : n);
    const int ldc = m + 2 * more;
    product(opa, opb, m, n, k, more, alpha, beta);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < ldc; i++) {
            const float c = got[i + j * ldc], before = host[2][i + j * ldc];
            if (i >= m) {
                expect(memcmp(&c, &before, sizeof c) == 0,
                       "%d x %d x %d, ld + %d: wrote between columns", m, n, k, more);
                continue;
            }
            double sum = 0, size = 0;
            for (int p = 0; p < k; p++) {
                double term =
                    element(host[0], opa, lda, i, p) * element(host[1], opb, ldb, p, j);
                sum += term;
                size += fabs(term);
            }
            sum = alpha * sum + (beta == 0 ? 0 : (double)beta * before);
            expect(
                fabs(c - sum) <= 1e-6 * (1 + fabs(alpha) * size + fabs(beta) * 2),
                "%d x %d x %d (%d, %d), ld + %d, alpha %g, beta %g: element %d, %d is %g,"
                " expected %g",
                m, n, k, opa, opb, more, alpha, beta, i, j, c, sum);
        }
}

static void products(void) {
    const int sizes[][3] = {{1, 1, 1},    {2, 3, 4},    {16, 6, 8},   {17, 7, 9},
                            {15, 5, 257}, {33, 13, 64}, {130, 9, 31}, {5, 400, 3},
                            {64, 64, 64}, {1, 70, 300}, {90, 1, 513}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int opa = 0; opa <= 2; opa++)
            for (int opb = 0; opb <= 2; opb++)
                for (int more = 0; more < 6; more += 3)
                    check_product(opa, opb, sizes[s][0], sizes[s][1], sizes[s][2], more,
                                  more ? -0.5f : 1,
                                  s % 3 == 0   ? 0
                                  : s % 3 == 1 ? 1
                                               : 2.5f);
    point("products: shapes, transposed or not, distances, alpha and beta");
    check_product(CUBLAS_OP_N, CUBLAS_OP_T, 20, 10, 0, 1, 1, 2);
    check_product(CUBLAS_OP_N, CUBLAS_OP_T, 20, 10, 0, 1, 1, 0);
    check_product(CUBLAS_OP_N, CUBLAS_OP_T, 20, 10, 5, 1, 0, 3);
    point("products of nothing: C is scaled, with beta 0 it becomes 0");
}

/* An element's bits depend on its row and column only, not on what is beside it. */
static void same_bits(void) {
    const float one = 1, none = 0;
    product(CUBLAS_OP_N, CUBLAS_OP_N, 50, 40, 300, 0, 1, 0);
    memcpy(again, got, sizeof got);
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 50, 13, 300, &one, device[0], 50,
                     device[1] + 7 * 300, 300, &none, device[2], 50));
    download(got, 2, 50 * 13);
    expect(memcmp(got, again + 7 * 50, 50 * 13 * sizeof *got) == 0,
           "13 of 40 columns by themselves are not the same");
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 11, 40, 300, &one, device[0] + 5,
                     50, device[1], 300, &none, device[2], 11));
    download(got, 2, 11 * 40);
    for (int j = 0; j < 40; j++)
        expect(memcmp(got + 11 * j, again + 5 + 50 * j, 11 * sizeof *got) == 0,
               "column %d: 11 of 50 rows by themselves are not the same", j);
    point("products: the same bits, whatever else is calculated");
}

static void vectors(void) {
    const int incs[] = {1, 2, -1, -3};
    const float alpha = 1.5f;
    for (int x = 0; x < 4; x++)
        for (int y = 0; y < 4; y++) {
            enum { N = 37 };
            const int incx = incs[x], incy = incs[y];
            fill(0, 4 * N);
            fill(1, 4 * N);
            if (x % 2)
                BLAS(cublasSaxpy_64(handle, N, &alpha, device[0], incx, device[1], incy));
            else
                BLAS(cublasSaxpy(handle, N, &alpha, device[0], incx, device[1], incy));
            download(got, 1, 4 * N);
            upload(1, 4 * N);
            BLAS(cublasScopy(handle, N, device[0], incx, device[1], incy));
            download(again, 1, 4 * N);
            for (int i = 0; i < N; i++) {
                const int from = incx < 0 ? (i - N + 1) * incx : i * incx;
                const int to = incy < 0 ? (i - N + 1) * incy : i * incy;
                expect(got[to] == host[1][to] + alpha * host[0][from],
                       "axpy, %d and %d: element %d", incx, incy, i);
                expect(again[to] == host[0][from], "copy, %d and %d: element %d", incx,
                       incy, i);
            }
            if (incy == 2)
                expect(got[1] == host[1][1] && again[1] == host[1][1],
                       "wrote between elements");
        }
    point("axpy and copy: distances of all kinds");

    fill(0, 90);
    BLAS(cublasSscal(handle, 30, &alpha, device[0], 1));
    BLAS(cublasSscal_64(handle, 20, &alpha, device[0] + 30, 3));
    BLAS(cublasSscal(handle, 20, &alpha, device[0], -1));
    BLAS(cublasSscal(handle, 0, &alpha, device[0], 1));
    download(got, 0, 90);
    for (int i = 0; i < 90; i++)
        expect(got[i] == host[0][i] * (i < 30 || i % 3 == 0 ? alpha : 1), "element %d",
               i);
    point("scal: with a distance, and nothing for a distance below 1");

    double sum = 0;
    float norm = -1;
    fill(0, 1000);
    for (int i = 0; i < 500; i++)
        sum += (double)host[0][2 * i] * host[0][2 * i];
    BLAS(cublasSnrm2(handle, 500, device[0], 2, &norm));
    expect(fabs(norm - sqrt(sum)) < 1e-5, "norm %g, expected %g", norm, sqrt(sum));
    host[0][0] = 3e30f;
    host[0][1] = 4e30f;
    upload(0, 2);
    BLAS(cublasSnrm2_64(handle, 2, device[0], 1, &norm));
    expect(fabs(norm / 5e30 - 1) < 1e-6, "of large numbers: %g", norm);
    norm = -1;
    BLAS(cublasSnrm2(handle, 0, device[0], 1, &norm));
    expect(norm == 0, "of nothing: %g", norm);
    norm = -1;
    BLAS(cublasSnrm2(handle, 5, device[0], 0, &norm));
    expect(norm == 0, "with distance 0: %g", norm);
    point("nrm2: the host has it when the call returns; nothing overflows on the way");
}

/* Factors and results on the device are read and written when their turn has come. */
static void pointer_modes(void) {
    cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
    cudaStream_t which = NULL;
    BLAS(cublasGetPointerMode(handle, &mode));
    expect(mode == CUBLAS_POINTER_MODE_HOST, "a handle begins with host pointers");
    BLAS(cublasGetStream(handle, &which));
    expect(which == stream, "another stream than was set");
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasGetPointerMode(handle, &mode));
    expect(mode == CUBLAS_POINTER_MODE_DEVICE, "the mode was not set");
    for (int i = 0; i < 8; i++)
        host[0][i] = host[1][i] = 1;
    upload(0, 8);
    upload(1, 8);
    // The norm of four ones is 2: it becomes the factor of what follows.
    float *factor = device[2];
    BLAS(cublasSnrm2(handle, 4, device[0], 1, factor));
    BLAS(cublasSscal(handle, 4, factor, device[0], 1));
    BLAS(cublasSaxpy(handle, 4, factor, device[0], 1, device[1], 1));
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 4, factor, device[0], 1,
                     device[1], 4, factor, device[1] + 7, 1));
    BLAS(cublasSnrm2(handle, 0, device[0], 1, factor));
    download(got, 1, 8);
    expect(got[0] == 5 && got[4] == 1, "axpy: %g", got[0]);
    expect(got[7] == 2 * (4 * 2 * 5) + 2 * 1, "gemm: %g", got[7]);
    download(got, 2, 1);
    expect(got[0] == 0, "the norm of nothing: %g", got[0]);
    // With 64-bit sizes the place of a float is no larger.
    float *just = NULL;
    CUDA(cudaMalloc((void **)&just, sizeof *just));
    BLAS(cublasSnrm2_64(handle, 4, device[0], 1, just));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(got, just, sizeof *just, cudaMemcpyDeviceToHost));
    expect(got[0] == 4, "the norm of four twos: %g", got[0]);
    CUDA(cudaFree(just));
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    point("factors and results on the device, in the order of the stream");
}

/* What rotg and rotmg find on the device, rot and rotm take from there. */
static void graphs(void) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    const float one = 1, two = 2;
    float norm = 0;
    host[0][0] = host[1][0] = host[2][0] = 1;
    for (int i = 0; i < 3; i++)
        upload(i, 1);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, device[0], 1,
                     device[1], 1, &one, device[2], 1));
    BLAS(cublasSscal(handle, 1, &two, device[0], 1));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        CUDA(cudaGraphLaunch(exec, stream));
    download(got, 2, 1);
    expect(got[0] == 1 + 1 + 2 + 4, "launched three times: %g", got[0]);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    expect(cublasSnrm2(handle, 1, device[0], 1, &norm) != CUBLAS_STATUS_SUCCESS,
           "a result for the host cannot be captured");
    expect(cudaStreamEndCapture(stream, &graph) != cudaSuccess, "the capture is invalid");
    cudaGetLastError();
    point("captured and launched; a result for the host ends a capture");
}

static void errors(void) {
    const float one = 1;
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    const cublasOperation_t n = CUBLAS_OP_N, t = CUBLAS_OP_T;
    float *a = device[0], *b = device[1], *c = device[2], norm;
    cublasHandle_t gone;
#define GEMM(opa, opb, m, n, k, lda, ldb, ldc) \
    cublasSgemm(handle, opa, opb, m, n, k, &one, a, lda, b, ldb, &one, c, ldc)
    BLAS_IS(invalid, GEMM(n, n, -1, 2, 3, 4, 4, 4));
    BLAS_IS(invalid, GEMM(n, n, 1, -2, 3, 4, 4, 4));
    BLAS_IS(invalid, GEMM(n, n, 1, 2, -3, 4, 4, 4));
    BLAS_IS(invalid, GEMM(n, n, 4, 2, 3, 3, 3, 4)); // A has 4 rows
    BLAS_IS(invalid, GEMM(t, n, 4, 2, 3, 2, 3, 4)); // as stored, 3
    BLAS(GEMM(t, n, 4, 2, 3, 3, 3, 4));
    BLAS_IS(invalid, GEMM(n, n, 4, 2, 3, 4, 2, 4)); // B has 3
    BLAS_IS(invalid, GEMM(n, t, 4, 2, 3, 4, 1, 4)); // as stored, 2
    BLAS(GEMM(n, t, 4, 2, 3, 4, 2, 4));
    BLAS_IS(invalid, GEMM(n, n, 4, 2, 3, 4, 3, 3)); // C has 4
    BLAS_IS(invalid, GEMM(n, n, 0, 2, 3, 0, 3, 1)); // at least 1
    BLAS_IS(invalid, GEMM((cublasOperation_t)7, n, 1, 1, 1, 1, 1, 1));
    BLAS(GEMM(n, n, 0, 2, 3, 1, 3, 1));
    BLAS_IS(invalid, cublasSgemm(handle, n, n, 1, 1, 1, NULL, a, 1, b, 1, &one, c, 1));
    BLAS_IS(invalid, cublasSgemm(handle, n, n, 1, 1, 1, &one, a, 1, b, 1, NULL, c, 1));
    BLAS_IS(invalid, cublasSaxpy(handle, 1, NULL, a, 1, b, 1));
    BLAS_IS(invalid, cublasSscal(handle, 1, NULL, a, 1));
    BLAS_IS(invalid, cublasSnrm2(handle, 1, a, 1, NULL));
    BLAS_IS(invalid, cublasSetPointerMode(handle, (cublasPointerMode_t)2));
    BLAS_IS(invalid, cublasGetPointerMode(handle, NULL));
    BLAS_IS(invalid, cublasGetStream(handle, NULL));
    BLAS_IS(invalid, cublasCreate(NULL));
    point("arguments that the manual forbids: CUBLAS_STATUS_INVALID_VALUE");

    const cublasStatus_t none = CUBLAS_STATUS_NOT_INITIALIZED;
    BLAS(cublasCreate(&gone));
    BLAS(cublasDestroy(gone));
    BLAS_IS(none, cublasDestroy(gone));
    BLAS_IS(none, cublasSetStream(gone, stream));
    BLAS_IS(none, cublasSetPointerMode(gone, CUBLAS_POINTER_MODE_HOST));
    BLAS_IS(none, cublasSaxpy(gone, 1, &one, a, 1, b, 1));
    BLAS_IS(none, cublasSscal(gone, 1, &one, a, 1));
    BLAS_IS(none, cublasScopy(gone, 1, a, 1, b, 1));
    BLAS_IS(none, cublasSnrm2(gone, 1, a, 1, &norm));
    BLAS_IS(none, cublasSgemm(gone, n, n, 1, 1, 1, &one, a, 1, b, 1, &one, c, 1));
    point("a handle that is none: CUBLAS_STATUS_NOT_INITIALIZED");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 3; i++)
        CUDA(cudaMalloc((void **)&device[i], ROOM * sizeof(float)));
    BLAS(cublasCreate(&handle));
    BLAS(cublasSetStream(handle, stream));
    products();
    same_bits();
    vectors();
    pointer_modes();
    graphs();
    errors();
    BLAS(cublasDestroy(handle));
    for (int i = 0; i < 3; i++)
        CUDA(cudaFree(device[i]));
    CUDA(cudaStreamDestroy(stream));
    return finish();
}
