/*
 * NCCL's data types, written down for the tests apart from the library: how large an
 * element is, what number its bits mean, and which bits a number becomes. A long double
 * holds every value of every type exactly, 64-bit integers included.
 */
#ifndef TYPES_H
#define TYPES_H

#include <math.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef long double number;

enum { TYPES = 12 };

static const struct type {
    const char *name;
    ncclDataType_t type;
    size_t size;            /* bytes of an element */
    bool integer, negative; /* a whole number; may be negative */
    int mantissa;           /* bits after the point, floating types */
    int bias;               /* of the exponent, floating types */
    bool infinity;          /* the largest exponent stands for infinity and NaN */
} types[TYPES] = {
    {"int8", ncclInt8, 1, true, true, 0, 0, false},
    {"uint8", ncclUint8, 1, true, false, 0, 0, false},
    {"int32", ncclInt32, 4, true, true, 0, 0, false},
    {"uint32", ncclUint32, 4, true, false, 0, 0, false},
    {"int64", ncclInt64, 8, true, true, 0, 0, false},
    {"uint64", ncclUint64, 8, true, false, 0, 0, false},
    {"half", ncclFloat16, 2, false, true, 10, 15, true},
    {"float", ncclFloat32, 4, false, true, 23, 127, true},
    {"double", ncclFloat64, 8, false, true, 52, 1023, true},
    {"bfloat16", ncclBfloat16, 2, false, true, 7, 127, true},
    {"float8 e4m3", ncclFloat8e4m3, 1, false, true, 3, 7, false},
    {"float8 e5m2", ncclFloat8e5m2, 1, false, true, 2, 15, true},
};

static inline uint64_t load_bits(const struct type *t, const void *from) {
    uint64_t bits = 0;
    memcpy(&bits, from, t->size); /* little endian, as every machine that runs this */
    return bits;
}

static inline void store_bits(const struct type *t, void *to, uint64_t bits) {
    memcpy(to, &bits, t->size);
}

/* 2 to the power of e: asked for a hundred million times, and so kept. */
static inline number power_of_2(int e) {
    enum { FAR = 1200 }; /* as far as the exponents of all types go */
    static number kept[2 * FAR + 1];
    if (e < -FAR || e > FAR)
        return ldexpl(1, e);
    if (kept[e + FAR] == 0)
        kept[e + FAR] = ldexpl(1, e);
    return kept[e + FAR];
}

/* The number that an element's bits mean; NaN where they mean none. */
static inline number decode(const struct type *t, uint64_t bits) {
    int width = (int)t->size * 8;
    if (t->integer) {
        uint64_t top = (uint64_t)1 << (width - 1);
        if (t->negative && (bits & top)) {
            uint64_t magnitude = (~bits + 1) & (top | (top - 1));
            return -(number)magnitude;
        }
        return (number)bits;
    }
    int exponents = width - 1 - t->mantissa;
    int largest = (1 << exponents) - 1;
    int exponent = (int)(bits >> t->mantissa) & largest;
    uint64_t fraction = bits & (((uint64_t)1 << t->mantissa) - 1);
    bool negative = bits >> (width - 1);
    number value;
    if (exponent == largest && t->infinity) {
        value = fraction ? (number)NAN : (number)INFINITY;
    } else if (exponent == largest && fraction == ((uint64_t)1 << t->mantissa) - 1 &&
               !t->infinity) {
        value = (number)NAN; /* e4m3: all ones, and nothing else */
    } else if (exponent == 0) {
        value = (number)fraction * power_of_2(1 - t->bias - t->mantissa);
    } else {
        number significand = (number)(fraction | (uint64_t)1 << t->mantissa);
        value = significand * power_of_2(exponent - t->bias - t->mantissa);
    }
    return negative ? -value : value;
}

/* The bits of the element nearest to `value`, ties to even. The tests stay within range.
 */
static inline uint64_t encode(const struct type *t, number value) {
    int width = (int)t->size * 8;
    uint64_t all = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1;
    if (t->integer) {
        uint64_t magnitude = (uint64_t)fabsl(value);
        return (value < 0 ? ~magnitude + 1 : magnitude) & all;
    }
    uint64_t sign = signbit(value) ? (uint64_t)1 << (width - 1) : 0;
    value = fabsl(value);
    if (value == 0) {
        return sign;
    }
    int exponent;
    frexpl(value, &exponent);
    exponent -= 1; /* value = 1.f * 2^exponent */
    if (exponent < 1 - t->bias) {
        exponent = 1 - t->bias; /* subnormal */
    }
    /* In units of the last place; rounding up to the next power of two carries by itself.
     */
    uint64_t units = (uint64_t)rintl(value * power_of_2(t->mantissa - exponent));
    uint64_t lead = (uint64_t)1 << t->mantissa;
    if (units < lead) {
        return sign | units;
    }
    return sign | (((uint64_t)(exponent + t->bias) << t->mantissa) + (units - lead));
}

static inline number load(const struct type *t, const void *array, size_t i) {
    return decode(t, load_bits(t, (const char *)array + i * t->size));
}

static inline void store(const struct type *t, void *array, size_t i, number value) {
    store_bits(t, (char *)array + i * t->size, encode(t, value));
}

/* Half of the gap between 1 and the next number: the relative error of one rounding. */
static inline number rounding(const struct type *t) {
    return t->integer ? 0 : power_of_2(-t->mantissa - 1);
}

/* The smallest number above 0: below it, roundings are absolute. */
static inline number smallest(const struct type *t) {
    return t->integer ? 0 : power_of_2(1 - t->bias - t->mantissa);
}

/* Numbers that look random and are the same on every rank and in every run. */
static inline uint64_t scramble(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
