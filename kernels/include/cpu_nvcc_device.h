/* cpu_nvcc_device.h: what kernels may use. CUDA Programming Guide, "C++ Language
 * Extensions"; CUDA Math API. */
#ifndef CPU_NVCC_DEVICE_H
#define CPU_NVCC_DEVICE_H
#pragma GCC system_header

#define CPU_DEVICE __device__ __forceinline__ static
/* A function that returns one expression. */
#define CPU_FN(type, name, parameters, ...) \
    CPU_DEVICE type name parameters { return __VA_ARGS__; }

/* --- Who a thread is ------------------------------------------------------------- */

extern "C" {
/* The numbers of struct kernel_where (kernels.h). */
__device__ __attribute__((const)) unsigned __kernel_index(int which);
}

#define CPU_INDEX(name, first)                                                       \
    struct name {                                                                    \
        __declspec(property(get = get_x)) unsigned x;                                \
        __declspec(property(get = get_y)) unsigned y;                                \
        __declspec(property(get = get_z)) unsigned z;                                \
        CPU_DEVICE unsigned get_x() { return __kernel_index(first); }                \
        CPU_DEVICE unsigned get_y() { return __kernel_index(first + 1); }            \
        CPU_DEVICE unsigned get_z() { return __kernel_index(first + 2); }            \
        __device__ __forceinline__ operator dim3() const { return dim3(x, y, z); }   \
        __device__ __forceinline__ operator uint3() const { return uint3{x, y, z}; } \
    };
CPU_INDEX(__cpu_grid_dim, 0)
CPU_INDEX(__cpu_block_dim, 3)
CPU_INDEX(__cpu_block_idx, 6)
CPU_INDEX(__cpu_thread_idx, 9)
#undef CPU_INDEX
static const __device__ __cpu_grid_dim gridDim = {};
static const __device__ __cpu_block_dim blockDim = {};
static const __device__ __cpu_block_idx blockIdx = {};
static const __device__ __cpu_thread_idx threadIdx = {};
constexpr int warpSize = 32;

/* --- Mathematics ------------------------------------------------------------------ */

/* The C library has functions of these names, which it does not give to programs. */
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __tanhf tanhf
#define __powf powf
#define __sincosf sincosf

CPU_FN(float, rsqrtf, (float x), 1 / sqrtf(x))
CPU_FN(float, rsqrt, (float x), 1 / sqrtf(x))
CPU_FN(double, rsqrt, (double x), 1 / sqrt(x))
CPU_FN(float, sinpif, (float x), sinf(x * 3.14159265358979f))
CPU_FN(float, cospif, (float x), cosf(x * 3.14159265358979f))
CPU_FN(double, sinpi, (double x), sin(x * 3.14159265358979323846))
CPU_FN(double, cospi, (double x), cos(x * 3.14159265358979323846))
CPU_FN(float, normcdff, (float x), 0.5f * erfcf(-x * 0.70710678118654752f))
CPU_FN(double, normcdf, (double x), 0.5 * erfc(-x * 0.70710678118654752440))
CPU_FN(float, __saturatef, (float x), x != x ? 0 : x < 0 ? 0 : x > 1 ? 1 : x)
CPU_FN(float, __frcp_rn, (float x), 1 / x)
CPU_FN(float, __fsqrt_rn, (float x), sqrtf(x))
CPU_FN(float, __frsqrt_rn, (float x), 1 / sqrtf(x))
CPU_FN(double, __drcp_rn, (double x), 1 / x)
CPU_FN(double, __dsqrt_rn, (double x), sqrt(x))
CPU_FN(float, __fdividef, (float x, float y), x / y)
CPU_FN(float, fdividef, (float x, float y), x / y)
CPU_FN(float, __fdiv_rn, (float x, float y), x / y)
CPU_FN(float, __fadd_rn, (float x, float y), x + y)
CPU_FN(float, __fsub_rn, (float x, float y), x - y)
CPU_FN(float, __fmul_rn, (float x, float y), x *y)
CPU_FN(double, __ddiv_rn, (double x, double y), x / y)
CPU_FN(double, __dadd_rn, (double x, double y), x + y)
CPU_FN(double, __dsub_rn, (double x, double y), x - y)
CPU_FN(double, __dmul_rn, (double x, double y), x *y)
CPU_FN(float, __fmaf_rn, (float x, float y, float z), fmaf(x, y, z))
CPU_FN(double, __fma_rn, (double x, double y, double z), fma(x, y, z))

/* --- Conversions ------------------------------------------------------------------ */

#define CPU_CONVERT(from, to, name, wide)                              \
    CPU_DEVICE to __##name##_rn(from x) { return (to)wide##rint(x); }  \
    CPU_DEVICE to __##name##_rz(from x) { return (to)wide##trunc(x); } \
    CPU_DEVICE to __##name##_ru(from x) { return (to)wide##ceil(x); }  \
    CPU_DEVICE to __##name##_rd(from x) { return (to)wide##floor(x); }
CPU_CONVERT(float, int, float2int, __builtin_)
CPU_CONVERT(float, unsigned, float2uint, __builtin_)
CPU_CONVERT(float, long long, float2ll, __builtin_)
CPU_CONVERT(float, unsigned long long, float2ull, __builtin_)
CPU_CONVERT(double, int, double2int, __builtin_)
CPU_CONVERT(double, unsigned, double2uint, __builtin_)
CPU_CONVERT(double, long long, double2ll, __builtin_)
CPU_CONVERT(double, unsigned long long, double2ull, __builtin_)
#undef CPU_CONVERT
#define CPU_TO(name, from, to) \
    CPU_DEVICE to name(from x) { return (to)x; }
CPU_TO(__int2float_rn, int, float)
CPU_TO(__uint2float_rn, unsigned, float)
CPU_TO(__ll2float_rn, long long, float)
CPU_TO(__ull2float_rn, unsigned long long, float)
CPU_TO(__int2double_rn, int, double)
CPU_TO(__uint2double_rn, unsigned, double)
CPU_TO(__ll2double_rn, long long, double)
CPU_TO(__ull2double_rn, unsigned long long, double)
CPU_TO(__double2float_rn, double, float)
#undef CPU_TO
#define CPU_BITS(name, from, to) \
    CPU_DEVICE to name(from x) { return __builtin_bit_cast(to, x); }
CPU_BITS(__int_as_float, int, float)
CPU_BITS(__uint_as_float, unsigned, float)
CPU_BITS(__float_as_int, float, int)
CPU_BITS(__float_as_uint, float, unsigned)
CPU_BITS(__longlong_as_double, long long, double)
CPU_BITS(__double_as_longlong, double, long long)
#undef CPU_BITS
CPU_FN(int, __double2hiint, (double x), (int)(__double_as_longlong(x) >> 32))
CPU_FN(int, __double2loint, (double x), (int)__double_as_longlong(x))
CPU_FN(double, __hiloint2double, (int hi, int lo), __longlong_as_double((long long)hi << 32 | (unsigned)lo))

/* --- Integers --------------------------------------------------------------------- */

CPU_FN(int, __popc, (unsigned x), __builtin_popcount(x))
CPU_FN(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
CPU_FN(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
CPU_FN(int, __clzll, (long long x), x ? __builtin_clzll((unsigned long long)x) : 64)
CPU_FN(int, __ffs, (int x), __builtin_ffs(x))
CPU_FN(int, __ffsll, (long long x), __builtin_ffsll(x))
CPU_FN(unsigned, __brev, (unsigned x), __builtin_bitreverse32(x))
CPU_FN(unsigned long long, __brevll, (unsigned long long x), __builtin_bitreverse64(x))
CPU_FN(int, __mul24, (int x, int y), x *y)
CPU_FN(unsigned, __umul24, (unsigned x, unsigned y), x *y)
CPU_FN(int, __mulhi, (int x, int y), (int)((long long)x *y >> 32))
CPU_FN(unsigned, __umulhi, (unsigned x, unsigned y), (unsigned)((unsigned long long)x *y >> 32))
CPU_FN(long long, __mul64hi, (long long x, long long y), (long long)((__int128)x *y >> 64))
CPU_FN(unsigned long long, __umul64hi, (unsigned long long x, unsigned long long y),
       (unsigned long long)((unsigned __int128)x *y >> 64))
CPU_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; i++)
        out |= (unsigned)(both >> (8 * (s >> 4 * i & 7)) & 255) << 8 * i;
    return out;
}
/* Four bytes at once. */
#define CPU_BYTES(name, type, byte, parameters, begin, step)                \
    CPU_DEVICE type name parameters {                                       \
        type all = begin;                                                   \
        for (int i = 0; i < 32; i += 8) {                                   \
            int a = (byte)((unsigned)x >> i), b = (byte)((unsigned)y >> i); \
            all += step;                                                    \
        }                                                                   \
        return all;                                                         \
    }
CPU_BYTES(__dp4a, int, signed char, (int x, int y, int z), z, a *b)
CPU_BYTES(__dp4a, unsigned, unsigned char, (unsigned x, unsigned y, unsigned z), z, (unsigned)(a *b))
#undef CPU_BYTES
CPU_FN(unsigned, __funnelshift_l, (unsigned lo, unsigned hi, unsigned n),
       (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32))
CPU_FN(unsigned, __funnelshift_r, (unsigned lo, unsigned hi, unsigned n),
       (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31)))

/* --- Memory ----------------------------------------------------------------------- */

#define CPU_LOAD(name) \
    template <class T> CPU_DEVICE T name(const T *p) { return *p; }
CPU_LOAD(__ldg)
CPU_LOAD(__ldcs)
CPU_LOAD(__ldca)
CPU_LOAD(__ldcg)
CPU_LOAD(__ldlu)
CPU_LOAD(__ldcv)
#undef CPU_LOAD
#define CPU_STORE(name) \
    template <class T> CPU_DEVICE void name(T *p, typename std::common_type<T>::type v) { *p = v; }
CPU_STORE(__stcs)
CPU_STORE(__stcg)
CPU_STORE(__stwb)
CPU_STORE(__stwt)
#undef CPU_STORE
CPU_FN(void, __threadfence, (), __atomic_thread_fence(__ATOMIC_SEQ_CST))
CPU_FN(void, __threadfence_block, (), __atomic_signal_fence(__ATOMIC_SEQ_CST))
CPU_FN(void, __threadfence_system, (), __atomic_thread_fence(__ATOMIC_SEQ_CST))

/* --- Time, and the end ------------------------------------------------------------ */

CPU_FN(long long, clock64, (), (long long)__builtin_readcyclecounter())
CPU_FN(void, __nanosleep, (unsigned), (void)0)
CPU_FN(void, __trap, (), __builtin_trap())
CPU_FN(void, __brkpt, (), (void)0)

#include "cpu_nvcc_together.h"

#endif
