/* cub.cuh: what programs with NCCL need of CUB: sums and scans of a warp, a block, and of
 * device memory. CUB documentation, "Block-wide", "Warp-wide", "Device-wide". */
#ifndef CPU_NVCC_CUB_H
#define CPU_NVCC_CUB_H
#pragma GCC system_header

namespace cub {
#define CPU_OP(name, result)                                                                  \
    struct name {                                                                             \
        template <class T> __host__ __device__ T operator()(T a, T b) const { return result; } \
    };
CPU_OP(Sum, a + b)
CPU_OP(Max, b > a ? b : a)
CPU_OP(Min, b < a ? b : a)
#undef CPU_OP

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };

extern "C" __device__ __attribute__((const)) bool __kernel_rests();

template <class T, int X, int Y, int Z> struct __cpu_block {
    struct TempStorage {
        alignas(T) unsigned char room[sizeof(T) * X * Y * Z];
        bool begun;
        __device__ T &at(int i) { return ((T *)room)[i]; }
    } & all;
    __device__ __cpu_block(TempStorage &storage) : all(storage) {}
};
CPU_FN(bool, __cpu_is_first, (), threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)

template <class T> CPU_DEVICE T __cpu_plus(T a, T b) {
    _Pragma("clang fp reassociate(on)") return a + b;
}

/* Only the first thread gets the result. Either the threads rest, and it adds up what they
 * have left. Or it is the last one to run: device.pl chooses. */
template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1,
          int Z = 1, int = 0>
struct BlockReduce : __cpu_block<T, X, Y, Z> {
    using __cpu_block<T, X, Y, Z>::__cpu_block;
    template <class F> __device__ T __cpu_rest(T value, F f, int n) {
        this->all.at((int)__cpu_thread()) = value;
        __kernel_wait(4, 0);
        if (__cpu_thread() == 0)
            for (int i = 1; i < n; i++)
                value = f(value, this->all.at(i));
        return value;
    }
    template <class F> __device__ T Reduce(T value, F f, int n = X * Y * Z) {
        if (__kernel_rests())
            return __cpu_rest(value, f, n);
        if ((int)__cpu_thread() < n) {
            this->all.at(0) = this->all.begun ? f(this->all.at(0), value) : value;
            this->all.begun = !__cpu_is_first();
        }
        return this->all.at(0);
    }
    template <class F, int N> __device__ T Reduce(T (&values)[N], F f) {
        T value = values[0];
        for (int i = 1; i < N; i++)
            value = f(value, values[i]);
        return Reduce(value, f);
    }
    __device__ T Sum(T value) {
        if (__kernel_rests())
            return __cpu_rest(value, cub::Sum(), X * Y * Z);
        T sum = this->all.at(0) = __cpu_plus(this->all.at(0), value);
        if (__cpu_is_first())
            this->all.at(0) = T();
        return sum;
    }
    __device__ T Sum(T value, int n) { return Sum((int)__cpu_thread() < n ? value : T()); }
    template <int N> __device__ T Sum(T (&values)[N]) {
        T value = values[0];
        for (int i = 1; i < N; i++)
            value = value + values[i];
        return Sum(value);
    }
};

template <class T, int LANES = 32, int = 0> struct WarpReduce {
    struct TempStorage {};
    __device__ WarpReduce(TempStorage &) {}
    template <class F> __device__ T Reduce(T value, F f, int n = LANES) {
        unsigned first = __cpu_lane() / LANES * LANES;
        __cpu_meet((LANES == 32 ? ~0u : (1u << LANES % 32) - 1) << first, value);
        T all = __cpu_got<T>(first);
        for (unsigned i = first + 1; i < first + n && __cpu_warp_mask() >> i & 1; i++)
            all = f(all, __cpu_got<T>(i));
        return all;
    }
    __device__ T Sum(T value, int n = LANES) { return Reduce(value, cub::Sum(), n); }
};

/* One thread does it all. */
template <class In, class Out, class F, class T>
__global__ void __cpu_reduce(In in, Out out, size_t n, F f, T all) {
    for (size_t i = 0; i < n;) { // sums of parts: not less exact than a GPU's
        T part = in[i++];
        for (; i < n && i % 1024; i++)
            part = f(part, in[i]);
        all = f(all, part);
    }
    *out = all;
}

struct DeviceReduce {
    template <class In, class Out, class N, class F, class T>
    static cudaError_t Reduce(void *storage, size_t &bytes, In in, Out out, N n, F f, T first, cudaStream_t stream = 0) {
        bytes = storage ? bytes : 1;
        if (storage)
            __cpu_reduce<<<1, 1, 0, stream>>>(in, out, (size_t)n, f, first);
        return cudaGetLastError();
    }
#define CPU_DEVICE_WIDE(name, first)                                                                    \
    template <class In, class Out, class N>                                                             \
    static cudaError_t name(void *storage, size_t &bytes, In in, Out out, N n, cudaStream_t stream = 0) { \
        using T = typename std::iterator_traits<In>::value_type;                                        \
        return Reduce(storage, bytes, in, out, n, cub::name(), (T)first, stream);                       \
    }
    CPU_DEVICE_WIDE(Sum, 0)
    CPU_DEVICE_WIDE(Max, std::numeric_limits<T>::lowest())
    CPU_DEVICE_WIDE(Min, std::numeric_limits<T>::max())
#undef CPU_DEVICE_WIDE
};
} // namespace cub

/* cuda/functional: what takes the place of cub::Max and cub::Min in CUDA 13. */
namespace cuda {
namespace std = ::std;
#define CPU_OP(name, as)                                                               \
    template <class T = void> struct name {                                            \
        __host__ __device__ T operator()(T a, T b) const { return cub::as()(a, b); }   \
    };                                                                                 \
    template <> struct name<void> : cub::as {};
CPU_OP(maximum, Max)
CPU_OP(minimum, Min)
#undef CPU_OP
} // namespace cuda

#endif
