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

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

CUDA_CPU_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162)

static inline __nv_bfloat16 __float2bfloat16(float a) {
    return __nv_bfloat16(a);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float a) {
    return __nv_bfloat16(a);
}
static inline __nv_bfloat16 __double2bfloat16(double a) {
    return __nv_bfloat16(a);
}
static inline __nv_bfloat16 __int2bfloat16_rn(int a) {
    return __nv_bfloat16(a);
}
static inline float __bfloat162float(__nv_bfloat16 a) {
    return (float)a;
}
static inline int __bfloat162int_rz(__nv_bfloat16 a) {
    return (int)(float)a;
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) {
    return ((__nv_bfloat16_raw)a).x;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) {
    __nv_bfloat16_raw raw = {a};
    return __nv_bfloat16(raw);
}
/* Toward zero: one bit less where the nearest one is larger. */
static inline __nv_bfloat16 __float2bfloat16_rz(float a) {
    __nv_bfloat16 nearest(a);
    return std::fabs((float)nearest) > std::fabs(a)
               ? __ushort_as_bfloat16((unsigned short)(__bfloat16_as_ushort(nearest) - 1))
               : nearest;
}
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
    return __nv_bfloat162(a, a);
}
static inline __nv_bfloat162 __float2bfloat162_rn(float a) {
    return __nv_bfloat162(a, a);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(a, b);
}
static inline float2 __bfloat1622float2(__nv_bfloat162 a) {
    return make_float2(a.x, a.y);
}
#endif

#endif
