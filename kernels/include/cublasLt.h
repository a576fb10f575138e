/* cublasLt.h: programs create a handle; products are not there. */
#ifndef CPU_NVCC_CUBLASLT_H
#define CPU_NVCC_CUBLASLT_H
#pragma GCC system_header
#include "cublas_v2.h"

typedef struct cublasLtContext *cublasLtHandle_t;
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return cublasCreate((cublasHandle_t *)handle); }
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy((cublasHandle_t)handle); }
#endif
