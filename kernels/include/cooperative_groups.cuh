/* cooperative_groups.cuh: the block, tiles of a warp, and the grid. CUDA Programming Guide, "Cooperative Groups". */
#ifndef CPU_NVCC_COOPERATIVE_GROUPS_H
#define CPU_NVCC_COOPERATIVE_GROUPS_H
#pragma GCC system_header

namespace cooperative_groups {
#define CPU_ASK(type, name, ...) \
    __device__ static type name() { return __VA_ARGS__; }
#define CPU_GROUP(rank, threads, wait)     \
    CPU_ASK(unsigned, thread_rank, rank)   \
    CPU_ASK(unsigned, size, threads)       \
    CPU_ASK(unsigned, num_threads, threads) \
    CPU_ASK(void, sync, wait)

struct thread_block {
    CPU_GROUP(__cpu_thread(), __cpu_threads(), __syncthreads())
    CPU_ASK(dim3, group_index, blockIdx)
    CPU_ASK(dim3, thread_index, threadIdx)
    CPU_ASK(dim3, group_dim, blockDim)
    CPU_ASK(dim3, dim_threads, blockDim)
};
CPU_FN(thread_block, this_thread_block, (), {})

struct grid_group {
    CPU_ASK(unsigned, block_rank, blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z))
    CPU_ASK(unsigned, num_blocks, gridDim.x *gridDim.y *gridDim.z)
    CPU_GROUP(block_rank() * __cpu_threads() + __cpu_thread(), num_blocks() * __cpu_threads(), __kernel_wait(5, 0))
    CPU_ASK(dim3, dim_blocks, gridDim)
    CPU_ASK(dim3, block_index, blockIdx)
    CPU_ASK(bool, is_valid, true)
};
CPU_FN(grid_group, this_grid, (), {})

template <unsigned N, class Parent = void> struct thread_block_tile {
    static_assert(N <= 32 && (N & (N - 1)) == 0, "tiles have up to 32 threads");
    thread_block_tile() = default;
    template <class P> __device__ thread_block_tile(const thread_block_tile<N, P> &) {}
    CPU_ASK(unsigned, first, __cpu_lane() / N * N)
    CPU_ASK(unsigned, mask, (N == 32 ? ~0u : (1u << N % 32) - 1) << first())
    CPU_GROUP(__cpu_lane() % N, N, __syncwarp(mask()))
    CPU_ASK(unsigned, meta_group_rank, __cpu_thread() / N)
    CPU_ASK(unsigned, meta_group_size, (__cpu_threads() + N - 1) / N)
#define CPU_TILE(name, type) \
    template <class T> __device__ T name(T value, type with) const { return __##name##_sync(mask(), value, with, N); }
    CPU_TILE(shfl, int)
    CPU_TILE(shfl_up, unsigned)
    CPU_TILE(shfl_down, unsigned)
    CPU_TILE(shfl_xor, int)
#undef CPU_TILE
    __device__ unsigned ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> first(); }
    __device__ int any(int predicate) const { return __any_sync(mask(), predicate); }
    __device__ int all(int predicate) const { return __all_sync(mask(), predicate); }
};
#undef CPU_GROUP
#undef CPU_ASK
template <unsigned N, class G> CPU_FN(auto, tiled_partition, (const G &), thread_block_tile<N, G>())
template <class G> CPU_FN(void, sync, (const G &group), group.sync())

#define CPU_OP(name, result)                                                          \
    template <class T = void> struct name {                                           \
        template <class V> __device__ V operator()(V a, V b) const { return result; } \
    };
CPU_OP(plus, a + b)
CPU_OP(less, b < a ? b : a)
CPU_OP(greater, b > a ? b : a)
CPU_OP(bit_and, a & b)
CPU_OP(bit_or, a | b)
CPU_OP(bit_xor, a ^ b)
#undef CPU_OP
/* Over the lanes of a tile from the first up to `end`. */
template <class G, class T, class F> CPU_DEVICE T __cpu_reduce(const G &tile, T value, F f, unsigned end) {
    __cpu_meet(tile.mask(), value);
    T all = __cpu_got<T>(tile.first());
    for (unsigned i = 1; i < end; i++)
        all = f(all, __cpu_got<T>(tile.first() + i));
    return all;
}
template <class G, class T, class F>
CPU_FN(T, reduce, (const G &tile, T value, F f), __cpu_reduce(tile, value, f, tile.size()))
template <class G, class T, class F = plus<T>>
CPU_FN(T, inclusive_scan, (const G &tile, T value, F f = {}), __cpu_reduce(tile, value, f, tile.thread_rank() + 1))
template <class G, class T, class F = plus<T>> CPU_DEVICE T exclusive_scan(const G &tile, T value, F f = {}) {
    T sum = __cpu_reduce(tile, value, f, tile.thread_rank());
    return tile.thread_rank() ? sum : T();
}
} // namespace cooperative_groups

#endif
