/*
 * cublas_v2.h of the CPU build: no GPU is used.
 *
 * It declares the calls of cuBLAS that add, scale, copy, measure and multiply vectors and
 * matrices. Names, types, values and signatures are those that NVIDIA publishes for
 * cuBLAS 12 and 13. (absent/cublas_calls.h names others, which are not here.)
 *
 * The rules in the comments come from the manual "cuBLAS". A call returns
 * CUBLAS_STATUS_SUCCESS, and CUBLAS_STATUS_NOT_INITIALIZED for a handle that is none.
 * Sizes and distances are in elements, not bytes. Vectors and matrices lie on the device;
 * a negative distance between a vector's elements starts at the far end. Matrices are
 * stored column by column: element (i, j) of A is A[i + j * lda].
 *
 * The calls for floats that stand first come twice: with int, and (cuBLAS 12 and newer)
 * with int64_t, for sizes and distances beyond 2^31 - 1.
 */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_

#include "absent/cublas_calls.h"
#include "cuda_runtime.h"
#include "library_types.h"
#include <stdint.h>

/* Inlined always, so that the library sees the program's own line. */
#define CUBLAS_CPU_INLINE __attribute__((always_inline)) static inline

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
#define cublasSnrm2 cublasSnrm2_v2
#define cublasSnrm2_64 cublasSnrm2_v2_64
#define cublasSgemm cublasSgemm_v2

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

/* ---------------------------------------------------------------- settings */

typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;

/* Accepted; nothing is calculated in a different way. */
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);

/* Between the host and the device; the host waits. Elements have `elemSize` bytes. */
cublasStatus_t cublasSetVector(int n, int elemSize, const void *x, int incx,
                               void *devicePtr, int incy);
cublasStatus_t cublasGetVector(int n, int elemSize, const void *x, int incx, void *y,
                               int incy);
cublasStatus_t cublasSetMatrix(int rows, int cols, int elemSize, const void *A, int lda,
                               void *B, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int cols, int elemSize, const void *A, int lda,
                               void *B, int ldb);

/* ---------------------------------------------------------------- float and double
 * For doubles what stands above for floats, with int. For both: the sum of products
 * (dot), and the place of the number that is farthest from 0, counted from 1 (amax). For
 * floats also y = alpha * op(A) * x + beta * y (gemv). */
#define cublasDaxpy cublasDaxpy_v2
#define cublasDscal cublasDscal_v2
#define cublasDcopy cublasDcopy_v2
#define cublasDnrm2 cublasDnrm2_v2
#define cublasDgemm cublasDgemm_v2
#define cublasSdot cublasSdot_v2
#define cublasDdot cublasDdot_v2
#define cublasIsamax cublasIsamax_v2
#define cublasIdamax cublasIdamax_v2
#define cublasSgemv cublasSgemv_v2
cublasStatus_t cublasDaxpy_v2(cublasHandle_t handle, int n, const double *alpha,
                              const double *x, int incx, double *y, int incy);
cublasStatus_t cublasDscal_v2(cublasHandle_t handle, int n, const double *alpha,
                              double *x, int incx);
cublasStatus_t cublasDcopy_v2(cublasHandle_t handle, int n, const double *x, int incx,
                              double *y, int incy);
cublasStatus_t cublasDnrm2_v2(cublasHandle_t handle, int n, const double *x, int incx,
                              double *result);
cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k,
                              const double *alpha, const double *A, int lda,
                              const double *B, int ldb, const double *beta, double *C,
                              int ldc);
cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int incx,
                             const float *y, int incy, float *result);
cublasStatus_t cublasDdot_v2(cublasHandle_t handle, int n, const double *x, int incx,
                             const double *y, int incy, double *result);
cublasStatus_t cublasIsamax_v2(cublasHandle_t handle, int n, const float *x, int incx,
                               int *result);
cublasStatus_t cublasIdamax_v2(cublasHandle_t handle, int n, const double *x, int incx,
                               int *result);
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m,
                              int n, const float *alpha, const float *A, int lda,
                              const float *x, int incx, const float *beta, float *y,
                              int incy);

/* ---------------------------------------------------------------- types by name
 * Of float, double, half and bfloat16 (CUDA_R_32F, 64F, 16F, 16BF); the sums are made in
 * double for doubles and in float for all others, whatever algorithm is asked for. alpha
 * and beta have the type of the computation. Another type: CUBLAS_STATUS_NOT_SUPPORTED.
 * Strided: matrix i begins i * stride elements after the first. */
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
} cublasGemmAlgo_t;

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k,
                            const void *alpha, const void *A, cudaDataType Atype, int lda,
                            const void *B, cudaDataType Btype, int ldb, const void *beta,
                            void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
    int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda,
    long long int strideA, const void *B, cudaDataType Btype, int ldb,
    long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
    long long int strideC, int batchCount, cublasComputeType_t computeType,
    cublasGemmAlgo_t algo);

/* The enumerator's name, such as "CUBLAS_STATUS_NOT_INITIALIZED". Not to be freed. */
const char *cublasGetStatusName(cublasStatus_t status);

/* The same in words. Not to be freed. */
const char *cublasGetStatusString(cublasStatus_t status);

#ifdef __cplusplus
} /* extern "C" */

/* The published header, too, lets C++ name the type of the computation as that of a
 * number. */
CUBLAS_CPU_INLINE cublasComputeType_t cublas_cpu_type(cudaDataType type) {
    return type == CUDA_R_32F   ? CUBLAS_COMPUTE_32F
           : type == CUDA_R_64F ? CUBLAS_COMPUTE_64F
           : type == CUDA_R_16F ? CUBLAS_COMPUTE_16F
                                : (cublasComputeType_t)0;
}
CUBLAS_CPU_INLINE cublasStatus_t cublasGemmEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
    int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda,
    const void *B, cudaDataType Btype, int ldb, const void *beta, void *C,
    cudaDataType Ctype, int ldc, cudaDataType computeType, cublasGemmAlgo_t algo) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype,
                        ldb, beta, C, Ctype, ldc, cublas_cpu_type(computeType), algo);
}
CUBLAS_CPU_INLINE cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
    int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda,
    long long int strideA, const void *B, cudaDataType Btype, int ldb,
    long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
    long long int strideC, int batchCount, cudaDataType computeType,
    cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype,
                                      lda, strideA, B, Btype, ldb, strideB, beta, C,
                                      Ctype, ldc, strideC, batchCount,
                                      cublas_cpu_type(computeType), algo);
}
#endif

#undef CUBLAS_CPU_INLINE
#endif
