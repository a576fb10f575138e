/* cuda_runtime_api.h of the CPU build: all of it stands in cuda_runtime.h. */
#ifndef CUDA_RUNTIME_API_H_CPU
#define CUDA_RUNTIME_API_H_CPU
#include "cuda_runtime.h"
#endif
