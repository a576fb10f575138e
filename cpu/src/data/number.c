/*
 * number.c has the data types and the reductions.
 *
 * NCCL adds up half, bfloat16 and the 8-bit floats; MPI knows none of them. They are
 * widened to float, reduced as floats, and rounded once at the end (to nearest, ties to
 * even). NCCL User Guide, "Types": ncclDataType_t, ncclRedOp_t.
 */
#include "data/number.h"

#include "data/rounding.h"

#include <math.h>

size_t type_size(int type) {
    static const size_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return sizes[type];
}

int carry_type(int type) {
    return type == ncclFloat16 || type >= ncclBfloat16 ? (int)ncclFloat32 : type;
}

/* A small float is described by the bits of its exponent and of its mantissa. */
struct format {
    int exponent, mantissa;
    bool finite; // e4m3: no infinity, and only the highest pattern is NaN
};

static struct format format_of(int type) {
    switch (type) {
    case ncclFloat16: return (struct format){5, 10, false};
    case ncclBfloat16: return (struct format){8, 7, false};
    case ncclFloat8e4m3: return (struct format){4, 3, true};
    default: return (struct format){5, 2, false};
    }
}

/* 2 to the power of e, exactly; far beyond the exponents of all that is made of it. */
static double power_of_2(int e) {
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float widen(unsigned bits, struct format f) {
    int width = 1 + f.exponent + f.mantissa, bias = (1 << (f.exponent - 1)) - 1;
    int highest = (1 << f.exponent) - 1;
    float sign = bits >> (width - 1) ? -1.0f : 1.0f;
    int exponent = (int)(bits >> f.mantissa) & highest;
    unsigned mantissa = bits & ((1u << f.mantissa) - 1);
    if (exponent == highest && !f.finite)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == highest && mantissa == (1u << f.mantissa) - 1)
        return NAN;
    if (exponent == 0)
        return sign * (float)(mantissa * power_of_2(1 - bias - f.mantissa));
    return sign * (float)((mantissa | 1u << f.mantissa) *
                          power_of_2(exponent - bias - f.mantissa));
}

static unsigned narrow(float value, struct format f) {
    int bias = (1 << (f.exponent - 1)) - 1, highest = (1 << f.exponent) - 1;
    unsigned sign = (signbit(value) ? 1u : 0u) << (f.exponent + f.mantissa);
    unsigned ones = (1u << f.mantissa) - 1;
    if (isnan(value))
        return sign | (unsigned)highest << f.mantissa | ones;
    float magnitude = fabsf(value);
    if (magnitude == 0)
        return sign;
    unsigned infinity = (unsigned)highest << f.mantissa;
    // The 8-bit formats saturate, as CUDA's conversions do; the 16-bit ones overflow.
    unsigned largest = f.finite ? infinity | (ones - 1) : infinity - 1;
    unsigned overflow = f.exponent + f.mantissa == 7 ? largest : infinity;
    if (isinf(magnitude))
        return sign | overflow;
    int exponent;
    frexpf(magnitude, &exponent);
    exponent -= 1; // magnitude = 1.xxx * 2^exponent
    if (exponent < 1 - bias)
        exponent = 1 - bias; // subnormal: a fixed step
    double steps = rint(magnitude * power_of_2(f.mantissa - exponent)); // ties to even
    // Carries run into the exponent by themselves.
    unsigned pattern = ((unsigned)(exponent + bias - 1) << f.mantissa) + (unsigned)steps;
    return sign | (pattern > largest ? overflow : pattern);
}

float number_widen(int type, uint16_t bits) {
    return widen(bits, format_of(type));
}

uint16_t number_narrow(int type, float value) {
    return (uint16_t)narrow(value, format_of(type));
}

#define EACH_CARRY_TYPE(DO)  \
    DO(ncclInt8, int8_t)     \
    DO(ncclUint8, uint8_t)   \
    DO(ncclInt32, int32_t)   \
    DO(ncclUint32, uint32_t) \
    DO(ncclInt64, int64_t)   \
    DO(ncclUint64, uint64_t) \
    DO(ncclFloat32, float)   \
    DO(ncclFloat64, double)

/* What one rank brings: widened, and multiplied where the reduction wants it. */
void to_carry(void *out, const void *in, size_t n, int type, int redop,
              const void *scalar) {
    AS_ON_A_GPU;
    if (carry_type(type) != type) {
        struct format f = format_of(type);
        float *to = out;
        bool two = type_size(type) == 2;
        for (size_t i = 0; i < n; i++)
            to[i] = widen(two ? ((const uint16_t *)in)[i] : ((const uint8_t *)in)[i], f);
        if (redop == PRE_MUL_SUM) {
            float factor =
                widen(two ? *(const uint16_t *)scalar : *(const uint8_t *)scalar, f);
            for (size_t i = 0; i < n; i++)
                to[i] *= factor;
        }
        return;
    }
    if (out != in)
        memcpy(out, in, n * type_size(type));
    if (redop != PRE_MUL_SUM)
        return;
    switch (type) {
#define MULTIPLY(id, ctype)                                                          \
    case id:                                                                         \
        for (size_t i = 0; i < n; i++)                                               \
            ((ctype *)out)[i] = (ctype)(((ctype *)out)[i] * *(const ctype *)scalar); \
        break;
        EACH_CARRY_TYPE(MULTIPLY)
    default: break;
    }
}

/* The result: divided for an average, and narrowed. */
void from_carry(void *out, const void *in, size_t n, int type, int redop, int nranks) {
    AS_ON_A_GPU;
    if (carry_type(type) != type) {
        struct format f = format_of(type);
        const float *from = in;
        bool two = type_size(type) == 2;
        float divisor = redop == ncclAvg ? (float)nranks : 1.0f;
        for (size_t i = 0; i < n; i++) {
            unsigned bits = narrow(from[i] / divisor, f);
            if (two)
                ((uint16_t *)out)[i] = (uint16_t)bits;
            else
                ((uint8_t *)out)[i] = (uint8_t)bits;
        }
        return;
    }
    if (out != in)
        memcpy(out, in, n * type_size(type));
    if (redop != ncclAvg)
        return;
    switch (type) {
#define DIVIDE(id, ctype)                                            \
    case id:                                                         \
        for (size_t i = 0; i < n; i++)                               \
            ((ctype *)out)[i] = (ctype)(((ctype *)out)[i] / nranks); \
        break;
        EACH_CARRY_TYPE(DIVIDE)
    default: break;
    }
}

void reduce_into(void *total, const void *more, size_t n, int carry, int redop) {
    AS_ON_A_GPU;
    switch (carry) {
#define REDUCE(id, ctype)                         \
    case id: {                                    \
        ctype *restrict a = total;                \
        const ctype *restrict b = more;           \
        if (redop == ncclProd)                    \
            for (size_t i = 0; i < n; i++)        \
                a[i] = (ctype)(a[i] * b[i]);      \
        else if (redop == ncclMax)                \
            for (size_t i = 0; i < n; i++)        \
                a[i] = b[i] > a[i] ? b[i] : a[i]; \
        else if (redop == ncclMin)                \
            for (size_t i = 0; i < n; i++)        \
                a[i] = b[i] < a[i] ? b[i] : a[i]; \
        else                                      \
            for (size_t i = 0; i < n; i++)        \
                a[i] = (ctype)(a[i] + b[i]);      \
        break;                                    \
    }
        EACH_CARRY_TYPE(REDUCE)
    default: break;
    }
}
