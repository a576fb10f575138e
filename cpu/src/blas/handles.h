/* handles.h: the handles of cuBLAS. */
#ifndef CPU_HANDLES_H
#define CPU_HANDLES_H

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "cuda/device.h"

struct cublasContext {
    int device;
    cudaStream_t stream;
    cublasPointerMode_t mode;
    cublasMath_t math;
    struct cublasContext *next;
};
bool is_context(cublasHandle_t handle);

/* At the entry of a call of cuBLAS: takes the lock, refuses a host function's call. */
#define CUBLAS_CALL                            \
    if (in_host_function())                    \
        return CUBLAS_STATUS_EXECUTION_FAILED; \
    if (device_forked())                       \
        return CUBLAS_STATUS_NOT_INITIALIZED;  \
    LOCKED

#endif
