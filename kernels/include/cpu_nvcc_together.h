/* cpu_nvcc_together.h: what threads do together: barriers, warps, atomics. CUDA
 * Programming Guide, "Synchronization Functions", "Atomic Functions", "Warp …". */
#ifndef CPU_NVCC_TOGETHER_H
#define CPU_NVCC_TOGETHER_H
#pragma GCC system_header

extern "C" {
/* The thread rests until those that `kind` says (kernels.h) have come so far. */
__device__ __attribute__((nomerge)) void __kernel_wait(unsigned kind, unsigned mask);
/* What each thread of a block gives the others, and what it gets when they go on. */
extern __device__ unsigned long long __kernel_given[1024], __kernel_got[1024];
}

CPU_FN(unsigned, __cpu_thread, (), threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
CPU_FN(unsigned, __cpu_threads, (), blockDim.x *blockDim.y *blockDim.z)

/* --- Barriers --------------------------------------------------------------------- */

CPU_DEVICE void __syncthreads() { __kernel_wait(1, 0); }
CPU_DEVICE int __syncthreads_count(int predicate) {
    int n = 0;
    __kernel_given[__cpu_thread()] = predicate != 0;
    __kernel_wait(1, 0);
    for (unsigned i = 0; i < __cpu_threads(); i++)
        n += (int)__kernel_given[i];
    __kernel_wait(1, 0);
    return n;
}
CPU_FN(int, __syncthreads_or, (int predicate), __syncthreads_count(predicate) != 0)
CPU_FN(int, __syncthreads_and, (int predicate), __syncthreads_count(!predicate) == 0)

/* --- Warps ------------------------------------------------------------------------ */

CPU_FN(unsigned, __cpu_lane, (), __cpu_thread() % 32)
CPU_FN(unsigned, __cpu_warp_mask, (),
       __cpu_threads() - __cpu_thread() / 32 * 32 >= 32 ? ~0u : (1u << __cpu_threads() % 32) - 1)
CPU_FN(unsigned, __activemask, (), (__kernel_wait(6, 0), (unsigned)__kernel_given[__cpu_thread()]))
CPU_DEVICE void __syncwarp(unsigned mask = ~0u) { __kernel_wait(2, mask); }

template <class T> CPU_DEVICE void __cpu_meet(unsigned mask, T value) {
    static_assert(sizeof(T) <= 8, "a warp's functions take up to 8 bytes");
    __builtin_memcpy(&__kernel_given[__cpu_thread()], &value, sizeof value);
    __kernel_wait(2, mask);
}
/* What a lane of this warp gave. */
template <class T> CPU_DEVICE T __cpu_got(unsigned lane) {
    T value;
    __builtin_memcpy(&value, &__kernel_got[__cpu_thread() / 32 * 32 + lane], sizeof value);
    return value;
}

/* A lane outside of the part, of `width` lanes, gives nothing: the value stays. */
#define CPU_SHUFFLE(name, argument, other, fits)                                               \
    template <class T> CPU_DEVICE T name(unsigned mask, T value, argument, int width = 32) {   \
        int lane = (int)__cpu_lane(), part = lane & ~(width - 1);                              \
        int from = other;                                                                      \
        __cpu_meet(mask, value);                                                               \
        return (fits) && __cpu_warp_mask() >> from & 1 ? __cpu_got<T>((unsigned)from) : value; \
    }
CPU_SHUFFLE(__shfl_sync, int source, part + (source & (width - 1)), true)
CPU_SHUFFLE(__shfl_up_sync, unsigned delta, lane - (int)delta, from >= part)
CPU_SHUFFLE(__shfl_down_sync, unsigned delta, lane + (int)delta, from < part + width)
CPU_SHUFFLE(__shfl_xor_sync, int with, lane ^ with, from < part + width)
#undef CPU_SHUFFLE

CPU_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned votes = 0;
    mask &= __cpu_warp_mask();
    __cpu_meet(mask, predicate != 0);
    for (unsigned i = 0; i < 32; i++)
        votes |= mask >> i & 1 && __cpu_got<bool>(i) ? 1u << i : 0;
    return votes;
}
CPU_FN(int, __any_sync, (unsigned mask, int predicate), __ballot_sync(mask, predicate) != 0)
CPU_FN(int, __all_sync, (unsigned mask, int predicate), __ballot_sync(mask, !predicate) == 0)
template <class T> CPU_DEVICE unsigned __match_any_sync(unsigned mask, T value) {
    unsigned same = 0;
    mask &= __cpu_warp_mask();
    __cpu_meet(mask, value);
    for (unsigned i = 0; i < 32; i++)
        same |= mask >> i & 1 && __cpu_got<T>(i) == value ? 1u << i : 0;
    return same;
}
template <class T> CPU_DEVICE unsigned __match_all_sync(unsigned mask, T value, int *all) {
    mask &= __cpu_warp_mask();
    *all = __match_any_sync(mask, value) == mask;
    return *all ? mask : 0;
}
#define CPU_REDUCE(name, type, result)                \
    CPU_DEVICE type name(unsigned mask, type value) { \
        type all = value;                             \
        mask &= __cpu_warp_mask();                    \
        __cpu_meet(mask, value);                      \
        for (unsigned i = 0, n = 0; i < 32; i++)      \
            if (mask >> i & 1) {                      \
                type one = __cpu_got<type>(i);        \
                all = n++ ? (type)(result) : one;     \
            }                                         \
        return all;                                   \
    }
CPU_REDUCE(__reduce_add_sync, int, all + one)
CPU_REDUCE(__reduce_add_sync, unsigned, all + one)
CPU_REDUCE(__reduce_min_sync, int, one < all ? one : all)
CPU_REDUCE(__reduce_min_sync, unsigned, one < all ? one : all)
CPU_REDUCE(__reduce_max_sync, int, one > all ? one : all)
CPU_REDUCE(__reduce_max_sync, unsigned, one > all ? one : all)
CPU_REDUCE(__reduce_and_sync, unsigned, all &one)
CPU_REDUCE(__reduce_or_sync, unsigned, all | one)
CPU_REDUCE(__reduce_xor_sync, unsigned, all ^ one)
#undef CPU_REDUCE

/* --- Atomics ---------------------------------------------------------------------- */

/* All kernels of a process run in one thread: nobody comes in between. With _system also
 * other processes and the host's threads may use the value. */
template <class T> struct __cpu_same { using type = T; };
template <class T> using __cpu_value = typename __cpu_same<T>::type;

template <class T, class F> __host__ __device__ __forceinline__ static T __cpu_exchange(T *p, F next) {
    T before, after;
    __atomic_load(p, &before, __ATOMIC_SEQ_CST);
    do
        after = next(before);
    while (!__atomic_compare_exchange(p, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return before;
}

#define CPU_ATOMIC(name, result)                                                                \
    template <class T> CPU_DEVICE T name(T *p, __cpu_value<T> v) {                              \
        _Pragma("clang fp reassociate(on)") T old = *p;                                         \
        *p = (T)(result);                                                                       \
        return old;                                                                             \
    }                                                                                           \
    template <class T> CPU_DEVICE T name##_block(T *p, __cpu_value<T> v) { return name(p, v); } \
    template <class T> CPU_DEVICE T name##_system(T *p, __cpu_value<T> v) {                     \
        return __cpu_exchange(p, [v](T old) { return (T)(result); });                           \
    }
CPU_ATOMIC(atomicAdd, old + v)
CPU_ATOMIC(atomicSub, old - v)
CPU_ATOMIC(atomicExch, v)
CPU_ATOMIC(atomicMin, v < old ? v : old)
CPU_ATOMIC(atomicMax, v > old ? v : old)
CPU_ATOMIC(atomicAnd, old &v)
CPU_ATOMIC(atomicOr, old | v)
CPU_ATOMIC(atomicXor, old ^ v)
CPU_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CPU_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef CPU_ATOMIC
template <class T> CPU_DEVICE T atomicCAS(T *p, __cpu_value<T> compare, __cpu_value<T> v) {
    T old = *p;
    if (old == compare)
        *p = v;
    return old;
}
template <class T> CPU_DEVICE T atomicCAS_block(T *p, __cpu_value<T> compare, __cpu_value<T> v) {
    return atomicCAS(p, compare, v);
}
template <class T> CPU_DEVICE T atomicCAS_system(T *p, __cpu_value<T> compare, __cpu_value<T> v) {
    return __sync_val_compare_and_swap(p, compare, v);
}

#endif
