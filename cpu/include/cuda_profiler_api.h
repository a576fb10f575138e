/* cuda_profiler_api.h of the CPU build: there is no profiler to be told. */
#ifndef CUDA_PROFILER_API_H_CPU
#define CUDA_PROFILER_API_H_CPU

#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both do nothing but return cudaSuccess. CUDA Runtime API, Profiler Control. */
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#ifdef __cplusplus
}
#endif

#endif
