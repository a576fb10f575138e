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
#define CUDA_CPU_SMALL_FLOAT_TYPE(F, F2, RAW, BITS, VALUE)       \
    struct __attribute__((aligned(2))) F {                       \
        F() = default;                                           \
        F(const RAW &raw) : bits(raw.x) {                        \
        }                                                        \
        F(float value) : bits(BITS(value)) {                     \
        }                                                        \
        F(double value) : bits(BITS((float)value)) {             \
        }                                                        \
        F(int value) : bits(BITS((float)value)) {                \
        }                                                        \
        F(unsigned int value) : bits(BITS((float)value)) {       \
        }                                                        \
        F(short value) : bits(BITS((float)value)) {              \
        }                                                        \
        F(unsigned short value) : bits(BITS((float)value)) {     \
        }                                                        \
        F(long long value) : bits(BITS((float)value)) {          \
        }                                                        \
        F(unsigned long long value) : bits(BITS((float)value)) { \
        }                                                        \
        operator float() const {                                 \
            return VALUE(bits);                                  \
        }                                                        \
        operator RAW() const {                                   \
            RAW raw = {bits};                                    \
            return raw;                                          \
        }                                                        \
                                                                 \
      private:                                                   \
        unsigned short bits;                                     \
    };                                                           \
    struct __attribute__((aligned(4))) F2 {                      \
        F x, y;                                                  \
        F2() = default;                                          \
        F2(const F &a, const F &b) : x(a), y(b) {                \
        }                                                        \
    };

CUDA_CPU_SMALL_FLOAT_TYPE(__half, __half2, __half_raw, cuda_cpu_half_bits,
                          cuda_cpu_half_value)

typedef __half half, nv_half, __nv_half;
typedef __half2 half2, nv_half2, __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

#define CUDA_CPU_SMALL_FLOAT(F, F2)                                                \
    static inline F __hadd(F a, F b) {                                             \
        return F((float)a + (float)b);                                             \
    }                                                                              \
    static inline F __hsub(F a, F b) {                                             \
        return F((float)a - (float)b);                                             \
    }                                                                              \
    static inline F __hmul(F a, F b) {                                             \
        return F((float)a * (float)b);                                             \
    }                                                                              \
    static inline F __hdiv(F a, F b) {                                             \
        return F((float)a / (float)b);                                             \
    }                                                                              \
    static inline F __hneg(F a) {                                                  \
        return F(-(float)a);                                                       \
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
    static inline bool __heq(F a, F b) {                                           \
        return (float)a == (float)b;                                               \
    }                                                                              \
    static inline bool __hne(F a, F b) {                                           \
        return (float)a < (float)b || (float)a > (float)b;                         \
    }                                                                              \
    static inline bool __hlt(F a, F b) {                                           \
        return (float)a < (float)b;                                                \
    }                                                                              \
    static inline bool __hle(F a, F b) {                                           \
        return (float)a <= (float)b;                                               \
    }                                                                              \
    static inline bool __hgt(F a, F b) {                                           \
        return (float)a > (float)b;                                                \
    }                                                                              \
    static inline bool __hge(F a, F b) {                                           \
        return (float)a >= (float)b;                                               \
    }                                                                              \
    static inline bool __hisnan(F a) {                                             \
        return std::isnan((float)a);                                               \
    }                                                                              \
    static inline int __hisinf(F a) {                                              \
        return std::isinf((float)a) ? ((float)a < 0 ? -1 : 1) : 0;                 \
    }                                                                              \
    static inline F operator+(const F &a, const F &b) {                            \
        return __hadd(a, b);                                                       \
    }                                                                              \
    static inline F operator-(const F &a, const F &b) {                            \
        return __hsub(a, b);                                                       \
    }                                                                              \
    static inline F operator*(const F &a, const F &b) {                            \
        return __hmul(a, b);                                                       \
    }                                                                              \
    static inline F operator/(const F &a, const F &b) {                            \
        return __hdiv(a, b);                                                       \
    }                                                                              \
    static inline F operator-(const F &a) {                                        \
        return __hneg(a);                                                          \
    }                                                                              \
    static inline F operator+(const F &a) {                                        \
        return a;                                                                  \
    }                                                                              \
    static inline F &operator+=(F &a, const F &b) {                                \
        return a = a + b;                                                          \
    }                                                                              \
    static inline F &operator-=(F &a, const F &b) {                                \
        return a = a - b;                                                          \
    }                                                                              \
    static inline F &operator*=(F &a, const F &b) {                                \
        return a = a * b;                                                          \
    }                                                                              \
    static inline F &operator/=(F &a, const F &b) {                                \
        return a = a / b;                                                          \
    }                                                                              \
    static inline bool operator==(const F &a, const F &b) {                        \
        return (float)a == (float)b;                                               \
    }                                                                              \
    static inline bool operator!=(const F &a, const F &b) {                        \
        return (float)a != (float)b;                                               \
    }                                                                              \
    static inline bool operator<(const F &a, const F &b) {                         \
        return (float)a < (float)b;                                                \
    }                                                                              \
    static inline bool operator<=(const F &a, const F &b) {                        \
        return (float)a <= (float)b;                                               \
    }                                                                              \
    static inline bool operator>(const F &a, const F &b) {                         \
        return (float)a > (float)b;                                                \
    }                                                                              \
    static inline bool operator>=(const F &a, const F &b) {                        \
        return (float)a >= (float)b;                                               \
    }                                                                              \
    static inline F2 __hadd2(F2 a, F2 b) {                                         \
        return F2(a.x + b.x, a.y + b.y);                                           \
    }                                                                              \
    static inline F2 __hsub2(F2 a, F2 b) {                                         \
        return F2(a.x - b.x, a.y - b.y);                                           \
    }                                                                              \
    static inline F2 __hmul2(F2 a, F2 b) {                                         \
        return F2(a.x * b.x, a.y * b.y);                                           \
    }                                                                              \
    static inline F2 __h2div(F2 a, F2 b) {                                         \
        return F2(a.x / b.x, a.y / b.y);                                           \
    }                                                                              \
    static inline F2 __hneg2(F2 a) {                                               \
        return F2(-a.x, -a.y);                                                     \
    }                                                                              \
    static inline F2 __hfma2(F2 a, F2 b, F2 c) {                                   \
        return F2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                   \
    }                                                                              \
    static inline float __low2float(F2 a) {                                        \
        return (float)a.x;                                                         \
    }                                                                              \
    static inline float __high2float(F2 a) {                                       \
        return (float)a.y;                                                         \
    }

CUDA_CPU_SMALL_FLOAT(__half, __half2)

static inline __half __float2half(float a) {
    return __half(a);
}
static inline __half __float2half_rn(float a) {
    return __half(a);
}
static inline __half __double2half(double a) {
    return __half(a);
}
static inline __half __int2half_rn(int a) {
    return __half(a);
}
static inline __half __uint2half_rn(unsigned int a) {
    return __half(a);
}
static inline __half __ll2half_rn(long long a) {
    return __half(a);
}
static inline float __half2float(__half a) {
    return (float)a;
}
static inline int __half2int_rz(__half a) {
    return (int)(float)a;
}
static inline unsigned short __half_as_ushort(__half a) {
    return ((__half_raw)a).x;
}
static inline short __half_as_short(__half a) {
    return (short)((__half_raw)a).x;
}
static inline __half __ushort_as_half(unsigned short a) {
    __half_raw raw = {a};
    return __half(raw);
}
/* Toward zero: one bit less where the nearest one is larger. */
static inline __half __float2half_rz(float a) {
    __half nearest(a);
    return std::fabs((float)nearest) > std::fabs(a)
               ? __ushort_as_half((unsigned short)(__half_as_ushort(nearest) - 1))
               : nearest;
}
static inline __half __short_as_half(short a) {
    return __ushort_as_half((unsigned short)a);
}
static inline __half2 make_half2(__half a, __half b) {
    return __half2(a, b);
}
static inline __half2 __halves2half2(__half a, __half b) {
    return __half2(a, b);
}
static inline __half2 __half2half2(__half a) {
    return __half2(a, a);
}
static inline __half2 __float2half2_rn(float a) {
    return __half2(a, a);
}
static inline __half2 __floats2half2_rn(float a, float b) {
    return __half2(a, b);
}
static inline __half2 __float22half2_rn(float2 a) {
    return __half2(a.x, a.y);
}
static inline float2 __half22float2(__half2 a) {
    return make_float2(a.x, a.y);
}
static inline __half __low2half(__half2 a) {
    return a.x;
}
static inline __half __high2half(__half2 a) {
    return a.y;
}
#endif

#endif
