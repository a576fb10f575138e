/*
 * cublas_v2.h of the CPU build: no GPU is used.
 *
 * It declares the calls of cuBLAS that add one vector to another, which is what a lesson
 * needs that does its sums on the GPU itself. Names, types, values and signatures are
 * those that NVIDIA publishes for cuBLAS 12 and 13.
 *
 * The rules in the comments come from the manual "cuBLAS". A call returns
 * CUBLAS_STATUS_SUCCESS, and CUBLAS_STATUS_NOT_INITIALIZED for a handle that is none.
 * Sizes and distances are in elements, not bytes.
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

/* The library on one device, and the stream that it works on. */
typedef struct cublasContext *cublasHandle_t;

/* The published headers give these calls their second version by name. */
#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSaxpy_64 cublasSaxpy_v2_64

/* Makes a handle for the current device; it works on the default stream until told
 * otherwise. A null pointer: CUBLAS_STATUS_INVALID_VALUE. */
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);

/* Waits for all work of the handle's device, then gives the handle up. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);

/* What is called with `handle` from now on is queued on `streamId`. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId);

/* Queues y[i * incy] += alpha * x[i * incx] for i = 0 … n - 1; a negative distance starts
 * at the far end. x and y lie on the device; alpha on the host, read before the call
 * returns. n <= 0 does nothing. */
cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                              const float *x, int incx, float *y, int incy);

/* The same for more than 2^31 - 1 elements (cuBLAS 12 and newer). */
cublasStatus_t cublasSaxpy_v2_64(cublasHandle_t handle, int64_t n, const float *alpha,
                                 const float *x, int64_t incx, float *y, int64_t incy);

/* The enumerator's name, such as "CUBLAS_STATUS_NOT_INITIALIZED". Not to be freed. */
const char *cublasGetStatusName(cublasStatus_t status);

/* The same in words. Not to be freed. */
const char *cublasGetStatusString(cublasStatus_t status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
