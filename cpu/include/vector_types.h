/*
 * vector_types.h of the CPU build: sizes of grids, and small vectors, as CUDA names them.
 */
#ifndef __VECTOR_TYPES_H__
#define __VECTOR_TYPES_H__

/* float4 and its kind, each with a make_float4(x, y, z, w). */
#define CUDA_CPU_VECTORS(name, type)                                                     \
    struct name##1 {                                                                     \
        type x;                                                                          \
    };                                                                                   \
    struct __attribute__((aligned(2 * sizeof(type)))) name##2 {                          \
        type x, y;                                                                       \
    };                                                                                   \
    struct name##3 {                                                                     \
        type x, y, z;                                                                    \
    };                                                                                   \
    struct __attribute__((aligned(sizeof(type) < 8 ? 4 * sizeof(type) : 16))) name##4 {  \
        type x, y, z, w;                                                                 \
    };                                                                                   \
    typedef struct name##1 name##1;                                                      \
    typedef struct name##2 name##2;                                                      \
    typedef struct name##3 name##3;                                                      \
    typedef struct name##4 name##4;                                                      \
    __attribute__((unused)) static inline name##1 make_##name##1(type x) {               \
        name##1 v = {x};                                                                 \
        return v;                                                                        \
    }                                                                                    \
    __attribute__((unused)) static inline name##2 make_##name##2(type x, type y) {       \
        name##2 v = {x, y};                                                              \
        return v;                                                                        \
    }                                                                                    \
    __attribute__((unused)) static inline name##3 make_##name##3(type x, type y,         \
                                                                 type z) {               \
        name##3 v = {x, y, z};                                                           \
        return v;                                                                        \
    }                                                                                    \
    __attribute__((unused)) static inline name##4 make_##name##4(type x, type y, type z, \
                                                                 type w) {               \
        name##4 v = {x, y, z, w};                                                        \
        return v;                                                                        \
    }
CUDA_CPU_VECTORS(char, signed char)
CUDA_CPU_VECTORS(uchar, unsigned char)
CUDA_CPU_VECTORS(short, short)
CUDA_CPU_VECTORS(ushort, unsigned short)
CUDA_CPU_VECTORS(int, int)
CUDA_CPU_VECTORS(uint, unsigned int)
CUDA_CPU_VECTORS(long, long)
CUDA_CPU_VECTORS(ulong, unsigned long)
CUDA_CPU_VECTORS(longlong, long long)
CUDA_CPU_VECTORS(ulonglong, unsigned long long)
CUDA_CPU_VECTORS(float, float)
CUDA_CPU_VECTORS(double, double)
#undef CUDA_CPU_VECTORS

/* The size of a grid or a block of a kernel. */
struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
    }
    constexpr operator uint3() const {
        return uint3{x, y, z};
    }
#endif
};
typedef struct dim3 dim3;

#endif
