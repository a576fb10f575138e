/*
 * cuda_fp16.h of the CPU build: half, and two of them.
 *
 * As in the published header there is something for C++ only. What is computed is
 * computed in float and rounded once, to nearest, ties to even, which is what a GPU gives
 * for one operation. CUDA Math API, "Half Precision Intrinsics".
 */
#ifndef __CUDA_FP16_H__
#define __CUDA_FP16_H__

#ifdef __cplusplus
#include "cuda_runtime.h"

#include <cmath>
#include <cstring>
#include <type_traits>

typedef struct __attribute__((aligned(2))) {
    unsigned short x;
} __half_raw;
typedef struct __attribute__((aligned(4))) {
    unsigned short x, y;
} __half2_raw;

/* The bits of a half that is nearest to `value`. */
static inline unsigned short cuda_cpu_half_bits(float value) {
    unsigned int bits;
    std::memcpy(&bits, &value, sizeof bits);
    unsigned int sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7fff; /* no number */
    if (magnitude >= 0x477ff000u)
        return (unsigned short)(sign | 0x7c00u); /* rounds to infinity */
    if (magnitude < 0x38800000u) {               /* subnormal: steps of 2^-24 */
        float steps = std::nearbyint(std::fabs(value) * 16777216.0f);
        return (unsigned short)(sign | (unsigned int)steps);
    }
    unsigned int half = (magnitude - 0x38000000u) >> 13, rest = magnitude & 0x1fffu;
    half += rest > 0x1000u || (rest == 0x1000u && (half & 1u));
    return (unsigned short)(sign | half);
}

static inline float cuda_cpu_half_value(unsigned short half) {
    unsigned int exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
    float magnitude = exponent == 0x1fu ? (mantissa ? NAN : INFINITY)
                      : exponent == 0
                          ? (float)mantissa / 16777216.0f
                          : std::ldexp((float)(mantissa | 0x400u), (int)exponent - 25);
    return half & 0x8000u ? -magnitude : magnitude;
}

/* What __half and __nv_bfloat16 have in common: F is the type, F2 two of them. */
#define CUDA_CPU_SMALL_FLOAT_TYPE(F, F2, RAW, BITS, VALUE)                             \
    struct __attribute__((aligned(2))) F {                                             \
        F() = default;                                                                 \
        F(const RAW &raw) : bits(raw.x) {                                              \
        }                                                                              \
        F(float value) : bits(BITS(value)) {                                           \
        }                                                                              \
        template <class T,                                                             \
                  class = typename std::enable_if<std::is_arithmetic<T>::value>::type> \
        F(T value) : bits(BITS((float)value)) {                                        \
        }                                                                              \
        operator float() const {                                                       \
            return VALUE(bits);                                                        \
        }                                                                              \
        operator RAW() const {                                                         \
            RAW raw = {bits};                                                          \
            return raw;                                                                \
        }                                                                              \
                                                                                       \
      private:                                                                         \
        unsigned short bits;                                                           \
    };                                                                                 \
    struct __attribute__((aligned(4))) F2 {                                            \
        F x, y;                                                                        \
        F2() = default;                                                                \
        F2(const F &a, const F &b) : x(a), y(b) {                                      \
        }                                                                              \
    };

#define CUDA_CPU_ARITHMETIC(F, F2, name, name2, op)       \
    static inline F name(F a, F b) {                      \
        return F(float(a) op float(b));                   \
    }                                                     \
    static inline F operator op(const F &a, const F &b) { \
        return name(a, b);                                \
    }                                                     \
    static inline F &operator op##=(F &a, const F &b) {   \
        return a = name(a, b);                            \
    }                                                     \
    static inline F2 name2(F2 a, F2 b) {                  \
        return F2(name(a.x, b.x), name(a.y, b.y));        \
    }                                                     \
    static inline F2 operator op(F2 a, F2 b) {            \
        return name2(a, b);                               \
    }

#define CUDA_CPU_COMPARISON(F, name, op)                     \
    static inline bool name(F a, F b) {                      \
        return float(a) op float(b);                         \
    }                                                        \
    static inline bool operator op(const F &a, const F &b) { \
        return float(a) op float(b);                         \
    }

#define CUDA_CPU_CONVERSION(from, name, to) \
    static inline to name(from a) {         \
        return (to)a;                       \
    }

/* What is done with them. In the names of conversions, NAME stands for one and NAME2 for
 * two. */
#define CUDA_CPU_SMALL_FLOAT(F, F2, RAW, NAME, NAME2)                              \
    CUDA_CPU_ARITHMETIC(F, F2, __hadd, __hadd2, +)                                 \
    CUDA_CPU_ARITHMETIC(F, F2, __hsub, __hsub2, -)                                 \
    CUDA_CPU_ARITHMETIC(F, F2, __hmul, __hmul2, *)                                 \
    CUDA_CPU_ARITHMETIC(F, F2, __hdiv, __h2div, /)                                 \
    CUDA_CPU_COMPARISON(F, __heq, ==)                                              \
    CUDA_CPU_COMPARISON(F, __hlt, <)                                               \
    CUDA_CPU_COMPARISON(F, __hle, <=)                                              \
    CUDA_CPU_COMPARISON(F, __hgt, >)                                               \
    CUDA_CPU_COMPARISON(F, __hge, >=)                                              \
    static inline bool operator!=(const F &a, const F &b) {                        \
        return (float)a != (float)b;                                               \
    }                                                                              \
    static inline bool __hne(F a, F b) { /* false, if one is no number */          \
        return a < b || a > b;                                                     \
    }                                                                              \
    static inline F __hneg(F a) {                                                  \
        return F(-(float)a);                                                       \
    }                                                                              \
    static inline F operator-(const F &a) {                                        \
        return __hneg(a);                                                          \
    }                                                                              \
    static inline F operator+(const F &a) {                                        \
        return a;                                                                  \
    }                                                                              \
    static inline F __habs(F a) {                                                  \
        return F(std::fabs((float)a));                                             \
    }                                                                              \
    static inline F __hmax(F a, F b) {                                             \
        return F(std::fmax((float)a, (float)b));                                   \
    }                                                                              \
    static inline F __hmin(F a, F b) {                                             \
        return F(std::fmin((float)a, (float)b));                                   \
    }                                                                              \
    static inline F __hfma(F a, F b, F c) {                                        \
        return F((float)((double)(float)a * (double)(float)b + (double)(float)c)); \
    }                                                                              \
    static inline bool __hisnan(F a) {                                             \
        return std::isnan((float)a);                                               \
    }                                                                              \
    static inline int __hisinf(F a) {                                              \
        return std::isinf((float)a) ? ((float)a < 0 ? -1 : 1) : 0;                 \
    }                                                                              \
    static inline F2 __hneg2(F2 a) {                                               \
        return F2(-a.x, -a.y);                                                     \
    }                                                                              \
    static inline F2 __hfma2(F2 a, F2 b, F2 c) {                                   \
        return F2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                   \
    }                                                                              \
    CUDA_CPU_CONVERSION(float, __float2##NAME, F)                                  \
    CUDA_CPU_CONVERSION(float, __float2##NAME##_rn, F)                             \
    CUDA_CPU_CONVERSION(double, __double2##NAME, F)                                \
    CUDA_CPU_CONVERSION(int, __int2##NAME##_rn, F)                                 \
    CUDA_CPU_CONVERSION(unsigned int, __uint2##NAME##_rn, F)                       \
    CUDA_CPU_CONVERSION(long long, __ll2##NAME##_rn, F)                            \
    CUDA_CPU_CONVERSION(unsigned long long, __ull2##NAME##_rn, F)                  \
    CUDA_CPU_CONVERSION(F, __##NAME##2float, float)                                \
    CUDA_CPU_CONVERSION(F, __##NAME##2int_rz, int)                                 \
    static inline unsigned short __##NAME##_as_ushort(F a) {                       \
        return ((RAW)a).x;                                                         \
    }                                                                              \
    static inline short __##NAME##_as_short(F a) {                                 \
        return (short)((RAW)a).x;                                                  \
    }                                                                              \
    static inline F __ushort_as_##NAME(unsigned short a) {                         \
        RAW raw = {a};                                                             \
        return F(raw);                                                             \
    }                                                                              \
    static inline F __short_as_##NAME(short a) {                                   \
        return __ushort_as_##NAME((unsigned short)a);                              \
    }                                                                              \
    /* Toward zero: one bit less where the nearest one is larger. */               \
    static inline F __float2##NAME##_rz(float a) {                                 \
        F nearest(a);                                                              \
        return std::fabs((float)nearest) > std::fabs(a)                            \
                   ? __ushort_as_##NAME((unsigned short)(((RAW)nearest).x - 1))    \
                   : nearest;                                                      \
    }                                                                              \
    static inline F2 make_##NAME2(F a, F b) {                                      \
        return F2(a, b);                                                           \
    }                                                                              \
    static inline F2 __halves2##NAME2(F a, F b) {                                  \
        return F2(a, b);                                                           \
    }                                                                              \
    static inline F2 __floats2##NAME2##_rn(float a, float b) {                     \
        return F2(a, b);                                                           \
    }                                                                              \
    static inline F2 __##NAME##2##NAME2(F a) {                                     \
        return F2(a, a);                                                           \
    }                                                                              \
    static inline F2 __float2##NAME2##_rn(float a) {                               \
        return F2(a, a);                                                           \
    }                                                                              \
    static inline F2 __float22##NAME2##_rn(float2 a) {                             \
        return F2(a.x, a.y);                                                       \
    }                                                                              \
    static inline float2 __##NAME2##2float2(F2 a) {                                \
        return make_float2(a.x, a.y);                                              \
    }                                                                              \
    static inline F __low2##NAME(F2 a) {                                           \
        return a.x;                                                                \
    }                                                                              \
    static inline F __high2##NAME(F2 a) {                                          \
        return a.y;                                                                \
    }                                                                              \
    static inline float __low2float(F2 a) {                                        \
        return (float)a.x;                                                         \
    }                                                                              \
    static inline float __high2float(F2 a) {                                       \
        return (float)a.y;                                                         \
    }

CUDA_CPU_SMALL_FLOAT_TYPE(__half, __half2, __half_raw, cuda_cpu_half_bits,
                          cuda_cpu_half_value)
CUDA_CPU_SMALL_FLOAT(__half, __half2, __half_raw, half, half2)

typedef __half half, nv_half, __nv_half;
typedef __half2 half2, nv_half2, __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
#endif

#endif
