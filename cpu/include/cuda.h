/*
 * cuda.h of the CPU build: what programs of the runtime need of CUDA's driver.
 *
 * These are the names of its types. Its calls are not here (absent/cuda_calls.h).
 */
#ifndef CUDA_H_CPU
#define CUDA_H_CPU

#define __cuda_cuda_h__
#define CUDA_VERSION 13000
#define CUDAAPI

#include "cuda_runtime.h"

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_SUPPORTED = 801
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;

#endif
