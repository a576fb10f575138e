/* cpu_nvcc_together.h: what threads do together: barriers, atomics, warps. */
#ifndef CPU_NVCC_TOGETHER_H
#define CPU_NVCC_TOGETHER_H

extern "C" {
/* The thread rests until those that `kind` says (kernels.h) have come so far. */
__device__ void __kernel_wait(unsigned kind, unsigned mask);
}

#endif
