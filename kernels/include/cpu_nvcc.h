/*
 * cpu_nvcc.h: what nvcc knows without an #include. cpu-nvcc includes it before every CUDA
 * file, which clang compiles twice: for the host, and for the kernels (__CUDA_ARCH__).
 */
#ifndef CPU_NVCC_H
#define CPU_NVCC_H
#pragma GCC system_header

#define __NVCC__ 1
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1

/* Kernels may call what stands in these headers of C. What is constexpr in those of C++
 * they may call anyhow; operators new and delete are known to the compiler as the
 * host's. */
#include <exception>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>
#pragma clang force_cuda_host_device begin
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cmath>
#include <math.h>
#ifdef __x86_64__
#include <mm_malloc.h> // <random> includes it, and it declares a function of <cstdlib> once more
#endif
#pragma clang force_cuda_host_device end
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <tuple>
#pragma clang force_cuda_host_device begin

#include "cuda_runtime.h"

#undef __host__
#undef __device__
#undef __global__
#undef __shared__
#undef __constant__
#undef __forceinline__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#ifdef __CUDA_ARCH__
#define __global__ __attribute__((global, section("cpu.kernel")))
#else
#define __global__ __attribute__((global))
#endif
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...) CPU_NVCC_REFUSED("clusters of blocks are not there")
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CPU_NVCC_PRAGMA(text) _Pragma(#text)
#define CPU_NVCC_REFUSED(text) CPU_NVCC_PRAGMA(GCC error text)
#ifdef __CUDA_ARCH__
#define __managed__ __attribute__((device, section("cpu.managed")))
#else
#define __managed__ __attribute__((device))
#endif
#define CUDA_CPU_OVERLOAD static inline

#include "cuda_fp16.h"
#include "cuda_bf16.h"
#pragma clang force_cuda_host_device end

#include "cpu_nvcc_launch.h"
#include "cpu_nvcc_device.h"

#endif
