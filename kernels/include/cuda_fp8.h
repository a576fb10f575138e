/* cuda_fp8.h: 8-bit floats, which are only converted. CUDA Math API, "FP8 Intrinsics". */
#ifndef __CUDA_FP8_H__
#define __CUDA_FP8_H__
#pragma GCC system_header
#define __CUDA_FP8_TYPES_EXIST__
#pragma clang force_cuda_host_device begin

/* To the nearest, ties to even; what is too large becomes the largest number. */
static inline unsigned char __cpu_fp8_bits(double x, int mantissa, int most, int nan) {
    const int bias = mantissa == 3 ? 7 : 15, sign = std::signbit(x) ? 128 : 0;
    int exponent;
    if (x != x)
        return (unsigned char)(sign | nan);
    frexp(x, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    double units = rint(ldexp(fabs(x), mantissa - exponent)); // of the last digit
    double bits = units + ((exponent + bias - 1) << mantissa);
    return (unsigned char)(sign | (bits > most ? most : (int)bits));
}
static inline float __cpu_fp8_value(unsigned char bits, int mantissa, int most) {
    const int bias = mantissa == 3 ? 7 : 15, size = bits & 127;
    int exponent = size >> mantissa, digits = size & ((1 << mantissa) - 1);
    if (size > most)
        return mantissa == 2 && digits == 0 ? (bits & 128 ? -INFINITY : INFINITY) : NAN;
    digits += exponent ? 1 << mantissa : 0;
    float value = ldexpf((float)digits, (exponent ? exponent : 1) - bias - mantissa);
    return bits & 128 ? -value : value;
}

#define CPU_FP8(name, mantissa, most, nan)                                               \
    struct name {                                                                        \
        unsigned char __x;                                                               \
        name() = default;                                                                \
        template <class T, class = decltype((double)T())>                                \
        explicit name(T x) : __x(__cpu_fp8_bits((double)(x), mantissa, most, nan)) {}    \
        explicit name(__half x) : name((float)x) {}                                      \
        explicit name(__nv_bfloat16 x) : name((float)x) {}                               \
        explicit operator float() const { return __cpu_fp8_value(__x, mantissa, most); } \
        explicit operator double() const { return (float)*this; }                        \
        explicit operator __half() const { return __half((float)*this); }                \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16((float)*this); }  \
    };
CPU_FP8(__nv_fp8_e4m3, 3, 126, 127)
CPU_FP8(__nv_fp8_e5m2, 2, 123, 127)
#undef CPU_FP8
#pragma clang force_cuda_host_device end
#endif
