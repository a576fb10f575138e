/*
 * cublas_v2.h of the CPU build: no GPU is used.
 *
 * It declares the calls of cuBLAS that add, scale, copy, measure and multiply vectors and
 * matrices of floats, which is what lessons need that do their sums on the GPU. Names,
 * types, values and signatures are those that NVIDIA publishes for cuBLAS 12 and 13.
 *
 * The rules in the comments come from the manual "cuBLAS". A call returns
 * CUBLAS_STATUS_SUCCESS, and CUBLAS_STATUS_NOT_INITIALIZED for a handle that is none.
 * Sizes and distances are in elements, not bytes. Vectors and matrices lie on the device;
 * a negative distance between a vector's elements starts at the far end. Matrices are
 * stored column by column: element (i, j) of A is A[i + j * lda].
 *
 * Each call comes twice: with int, and (cuBLAS 12 and newer) with int64_t, for sizes and
 * distances beyond 2^31 - 1.
 */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

/* Whether a matrix is taken as it is stored, or transposed. */
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2 // of floats: the same as CUBLAS_OP_T
} cublasOperation_t;

/* Where alpha, beta and results that are one number lie. */
typedef enum {
    CUBLAS_POINTER_MODE_HOST = 0,
    CUBLAS_POINTER_MODE_DEVICE = 1
} cublasPointerMode_t;

/* The library on one device, and the stream that it works on. */
typedef struct cublasContext *cublasHandle_t;

/* The published headers give these calls their second version by name. */
#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSaxpy_64 cublasSaxpy_v2_64
#define cublasSscal cublasSscal_v2
#define cublasSscal_64 cublasSscal_v2_64
#define cublasScopy cublasScopy_v2
#define cublasScopy_64 cublasScopy_v2_64
#define cublasSnrm2 cublasSnrm2_v2
#define cublasSnrm2_64 cublasSnrm2_v2_64
#define cublasSgemm cublasSgemm_v2
#define cublasSgemm_64 cublasSgemm_v2_64

/* Makes a handle for the current device; it works on the default stream until told
 * otherwise. A null pointer: CUBLAS_STATUS_INVALID_VALUE. */
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);

/* Waits for all work of the handle's device, then gives the handle up. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);

/* What is called with `handle` from now on is queued on `streamId`. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId);

/* The stream that was set, 0 if none was. */
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *streamId);

/* Host (where a handle begins): alpha and beta are read before a call returns, and a call
 * whose result is one number waits for it. Device: they lie on the device and are read
 * and written there, in the order of the stream; no call waits. Another mode:
 * CUBLAS_STATUS_INVALID_VALUE. */
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode);

/* Queues y[i * incy] += alpha * x[i * incx] for i = 0 … n - 1. n <= 0 does nothing. */
cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy);
cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy);

/* Queues x[i * incx] *= alpha for i = 0 … n - 1. n <= 0 or incx <= 0 does nothing. */
cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha, float *x,
                              int incx);
cublasStatus_t cublasSscal_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 float *x, int64_t incx);

/* Queues y[i * incy] = x[i * incx] for i = 0 … n - 1. n <= 0 does nothing. */
cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *y, int incy);
cublasStatus_t cublasScopy_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *y, int64_t incy);

/* *result = the Euclidean norm of x: the square root of the sum of x[i * incx]². It is 0
 * for n <= 0 or incx <= 0. Waits for it unless the result lies on the device. */
cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int incx,
                              float *result);
cublasStatus_t cublasSnrm2_v2_64(cublasHandle_t handle, int64_t n, const float *x,
                                 int64_t incx, float *result);

/* Queues C = alpha * op(A) * op(B) + beta * C, where op(A) is m x k, op(B) k x n and C
 * m x n. With beta 0 what is in C is not read. lda, ldb, ldc: from one column as it is
 * stored to the next, at least as many as the stored matrix has rows. A negative size, a
 * distance that is too small, an unknown operation or a null factor:
 * CUBLAS_STATUS_INVALID_VALUE. */
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k,
                              const float *alpha, const float *A, int lda, const float *B,
                              int ldb, const float *beta, float *C, int ldc);
cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa,
                                 cublasOperation_t transb, int64_t m, int64_t n,
                                 int64_t k, const float *alpha, const float *A,
                                 int64_t lda, const float *B, int64_t ldb,
                                 const float *beta, float *C, int64_t ldc);

/* The enumerator's name, such as "CUBLAS_STATUS_NOT_INITIALIZED". Not to be freed. */
const char *cublasGetStatusName(cublasStatus_t status);

/* The same in words. Not to be freed. */
const char *cublasGetStatusString(cublasStatus_t status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
