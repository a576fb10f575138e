/*
 * cuda_bf16.h of the CPU build: bfloat16, the upper half of a float, and two of them.
 *
 * As in the published header there is something for C++ only; what is computed is
 * computed in float and rounded once, to nearest, ties to even. CUDA Math API, "Bfloat16
 * Precision Intrinsics".
 */
#ifndef __CUDA_BF16_H__
#define __CUDA_BF16_H__

#ifdef __cplusplus
#include "cuda_fp16.h"

typedef struct __attribute__((aligned(2))) {
    unsigned short x;
} __nv_bfloat16_raw;
typedef struct __attribute__((aligned(4))) {
    unsigned short x, y;
} __nv_bfloat162_raw;

static inline unsigned short cuda_cpu_bfloat16_bits(float value) {
    unsigned int bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (std::isnan(value))
        return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float cuda_cpu_bfloat16_value(unsigned short upper) {
    unsigned int bits = (unsigned int)upper << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

CUDA_CPU_SMALL_FLOAT_TYPE(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw,
                          cuda_cpu_bfloat16_bits, cuda_cpu_bfloat16_value)

CUDA_CPU_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, bfloat16,
                     bfloat162)

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#endif

#endif
