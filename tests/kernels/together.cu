// Kernels whose threads work together: shared memory, barriers, atomics, warps, half. Many small cases.
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <vector>

static int wrong, cases;
#define CHECK(condition)                                                              \
    do {                                                                              \
        cases++;                                                                      \
        if (!(condition)) {                                                           \
            printf("wrong at line %d: %s\n", __LINE__, #condition);                   \
            wrong++;                                                                  \
        }                                                                             \
    } while (0)

template <class T> struct Buffer {
    T *at;
    int n;
    Buffer(int n) : n(n) {
        cudaMalloc(&at, n * sizeof(T));
        cudaMemset(at, 0, n * sizeof(T));
    }
    ~Buffer() { cudaFree(at); }
    std::vector<T> host() const {
        std::vector<T> v(n);
        cudaMemcpy(v.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
    void set(const std::vector<T> &v) { cudaMemcpy(at, v.data(), n * sizeof(T), cudaMemcpyHostToDevice); }
};

__global__ void reverse(int *x) { // static shared memory
    __shared__ int s[256];
    int i = threadIdx.x;
    s[i] = x[blockIdx.x * blockDim.x + i];
    __syncthreads();
    x[blockIdx.x * blockDim.x + i] = s[blockDim.x - 1 - i];
}
__global__ void sum_dynamic(const int *x, int *sums) { // dynamic shared memory, a loop of barriers
    extern __shared__ int s[];
    s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}
template <int N> __global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[N][N], bs[N][N];
    int row = blockIdx.y * N + threadIdx.y, column = blockIdx.x * N + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += N) {
        as[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < N; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void early(int *x, int n) { // some threads have gone before the barrier
    int i = threadIdx.x;
    if (i >= n) return;
    x[i] = i;
    __syncthreads();
    x[i] += x[n - 1 - i] * 0 + 1;
}
__device__ int helper(int *s, int i) { // a barrier in a function, in a branch that all take
    s[i] = i * i;
    __syncthreads();
    return s[(i + 1) % blockDim.x];
}
__global__ void in_function(int *x, bool twice) {
    __shared__ int s[64];
    int sum = helper(s, threadIdx.x);
    if (twice) {
        __syncthreads();
        sum += helper(s, threadIdx.x);
    }
    x[threadIdx.x] = sum;
}
__global__ void counts(int *x) {
    int n = __syncthreads_count(threadIdx.x % 3 == 0);
    int any = __syncthreads_or(threadIdx.x == 70), all = __syncthreads_and(threadIdx.x < 1000);
    if (threadIdx.x == 5) x[0] = n, x[1] = any, x[2] = all;
}
__global__ void atomics(int *x, unsigned *u, float *f, double *d, unsigned long long *l) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&x[0], 1);
    atomicSub(&x[1], 2);
    atomicMin(&x[2], -i);
    atomicMax(&x[3], i);
    atomicAnd(&x[4], ~(1 << i % 3));
    atomicOr(&x[5], 1 << i % 5);
    atomicXor(&x[6], i);
    if (atomicCAS(&x[7], 0, i + 100) == 0) x[8] = i;
    atomicInc(&u[0], 9);
    atomicDec(&u[1], 9);
    atomicExch(&u[2], 7u);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd(l, 3);
    atomicAdd_system(&x[9], 1);
    atomicMax_block(&u[3], (unsigned)i);
    atomicAdd_system(&f[1], 1.f);
    x[10 + atomicAdd(&x[50], 1)] = 1;
}
__global__ void histogram(const unsigned char *x, int n, unsigned *bins) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
__inline__ __device__ float warp_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}
__global__ void block_sum(const float *x, float *out, int n) { // shuffles, then shared memory
    static __shared__ float parts[32];
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
    v = warp_sum(v);
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / warpSize ? parts[lane] : 0;
    if (warp == 0) v = warp_sum(v);
    if (threadIdx.x == 0) atomicAdd(out, v);
}
__global__ void warps(int *x) {
    int i = threadIdx.x, lane = i % 32;
    unsigned full = 0xffffffffu;
    int *mine = x + i * 16;
    mine[0] = __shfl_sync(full, i, 3);
    mine[1] = __shfl_up_sync(full, i, 1);
    mine[2] = __shfl_down_sync(full, i, 1, 8);
    mine[3] = __shfl_xor_sync(full, i, 1);
    mine[4] = __ballot_sync(full, lane % 2) == 0xaaaaaaaau;
    mine[5] = __any_sync(full, lane == 9) + 2 * __all_sync(full, lane < 32) + 4 * __all_sync(full, lane < 31);
    mine[6] = __reduce_add_sync(full, i);
    mine[7] = __reduce_max_sync(full, i);
    mine[8] = (int)__match_any_sync(full, lane / 16);
    if (lane < 16) mine[9] = __shfl_sync(0xffffu, i, 5); // half of the lanes
    __syncwarp();
    mine[10] = (int)__shfl_sync(full, (double)i, 2, 4);
    mine[11] = __popc(__activemask());
    mine[12] = __reduce_min_sync(full, -i);
}
// One atomic for the lanes that are there; the others have no value of "at" to give.
__global__ void keep(const int *x, int *n, int *out, bool ask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i % 32, at;
    unsigned mask = __ballot_sync(~0u, x[i] % 3 == 0);
    if (x[i] % 3 == 0) {
        if (ask) mask = __activemask();
        int leader = __ffs(mask) - 1;
        if (lane == leader) at = atomicAdd(n, __popc(mask));
        at = __shfl_sync(mask, at, leader);
        out[at + __popc(mask & ((1u << lane) - 1))] = x[i];
    }
}
__global__ void votes(int *x, int n) { // those that have ended have no vote
    if (__shfl_sync(~0u, threadIdx.x + 1, 5) && threadIdx.x >= n) return;
    x[threadIdx.x] = __syncthreads_count(threadIdx.x % 2);
}
// The upper half is one shuffle behind, with a mask of its own.
__global__ void halves(int *x) {
    int i = threadIdx.x, v = i;
    if (i >= 16) v += __shfl_xor_sync(0xffff0000u, v, 1);
    __syncwarp();
    x[i] = v + __shfl_xor_sync(~0u, v, 16);
}
// Without a barrier: the threads of a warp are in step at what is volatile.
__global__ void in_step(int *x) {
    __shared__ volatile int s[64], part[32];
    int t = threadIdx.x;
    s[t] = 0;
    s[t + 32] = part[t] = x[t];
    for (int k = 1; k < 32; k *= 2) s[t + 32] += s[t + 32 - k];
    if (t < 16)
        for (int k = 8; k > 0; k /= 2) part[t] += part[t + k];
    x[t] = s[t + 32];
    x[32 + t] = part[0];
}
__global__ void active(unsigned *x) {
    int i = threadIdx.x;
    if (i % 2)
        x[i] = __activemask();
    else
        x[i] = ~__activemask();
    for (int k = 0; k < i % 4; k++) x[32 + i] = __activemask();
}
__global__ void small(const __half *a, __half *b, __nv_bfloat16 *c, __half2 *h2, int n) {
    int i = threadIdx.x;
    if (i < n) {
        b[i] = __hadd(a[i], __float2half(1.0f));
        c[i] = __float2bfloat16(__half2float(a[i]) * 2);
        h2[i] = __hmul2(__halves2half2(a[i], b[i]), __float2half2_rn(2.0f));
        if (i == 0) b[i] = b[i] * __half(3) + a[i] - __half(1);
    }
}
__global__ void half_sum(const __half *x, float *sum, __half *most) {
    __half v = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset >>= 1) v = __hadd(v, __shfl_xor_sync(0xffffffff, v, offset));
    if (threadIdx.x == 0) *sum = __half2float(v), *most = __hmax(x[0], x[31]);
    atomicAdd(most, __half(1));
}
struct alignas(16) Pack { float v[4]; };
__global__ void packs(const float4 *x, float4 *y, Pack *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        v.x += 1;
        y[i] = v;
        Pack p = *reinterpret_cast<const Pack *>(&x[i]);
        for (float &f : p.v) f *= 2;
        z[i] = p;
    }
}

int main() {
    {
        Buffer<int> x(512), sums(2);
        std::vector<int> v(512);
        for (int i = 0; i < 512; i++) v[i] = i;
        x.set(v);
        reverse<<<2, 256>>>(x.at);
        v = x.host();
        CHECK(v[0] == 255 && v[255] == 0 && v[256] == 511);
        sum_dynamic<<<2, 256, 256 * sizeof(int)>>>(x.at, sums.at);
        auto s = sums.host();
        CHECK(s[0] == 255 * 128 && s[1] == 256 * 256 + 255 * 128);
        early<<<1, 128>>>(x.at, 100);
        CHECK(x.host()[99] == 100);
        in_function<<<1, 64>>>(x.at, true);
        CHECK(x.host()[62] == 2 * 63 * 63 && x.host()[63] == 0);
        counts<<<1, 96>>>(x.at);
        v = x.host();
        CHECK(v[0] == 32 && v[1] == 1 && v[2] == 1);
    }
    {
        const int n = 64;
        Buffer<float> a(n * n), b(n * n), c(n * n);
        std::vector<float> va(n * n), vb(n * n);
        for (int i = 0; i < n * n; i++) va[i] = i % 7, vb[i] = i % 5;
        a.set(va);
        b.set(vb);
        product<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a.at, b.at, c.at, n);
        auto vc = c.host();
        bool same = true;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int k = 0; k < n; k++) sum += va[i * n + k] * vb[k * n + j];
                same = same && sum == vc[i * n + j];
            }
        CHECK(same);
    }
    {
        Buffer<int> x(2000);
        Buffer<unsigned> u(4);
        Buffer<float> f(2);
        Buffer<double> d(1);
        Buffer<unsigned long long> l(1);
        std::vector<int> v(2000);
        v[4] = -1;
        x.set(v);
        atomics<<<4, 100>>>(x.at, u.at, f.at, d.at, l.at);
        v = x.host();
        auto w = u.host();
        CHECK(v[0] == 400 && v[1] == -800 && v[2] == -399 && v[3] == 399 && v[4] == ~7 && v[5] == 31 && v[6] == 0);
        CHECK(v[7] == v[8] + 100 && v[9] == 400); // whichever thread came first
        CHECK(w[0] == 0 && w[1] == 0 && w[2] == 7 && w[3] == 399);
        CHECK(f.host()[0] == 200 && f.host()[1] == 400 && d.host()[0] == 100 && l.host()[0] == 1200);
        Buffer<unsigned char> bytes(10000);
        Buffer<unsigned> bins(256);
        std::vector<unsigned char> b(10000);
        for (int i = 0; i < 10000; i++) b[i] = i % 10;
        bytes.set(b);
        histogram<<<3, 256>>>(bytes.at, 10000, bins.at);
        CHECK(bins.host()[9] == 1000 && bins.host()[10] == 0);
    }
    {
        Buffer<float> x(5000), out(1);
        std::vector<float> v(5000);
        for (int i = 0; i < 5000; i++) v[i] = i % 10;
        x.set(v);
        block_sum<<<4, 256>>>(x.at, out.at, 5000);
        CHECK(out.host()[0] == 22500);
        Buffer<int> w(64 * 16);
        warps<<<1, 64>>>(w.at);
        auto r = w.host();
        active<<<1, 32>>>((unsigned *)w.at);
        auto mask = w.host();
        CHECK(mask[6] == (int)0xaaaaaaaa && mask[7] == mask[6] && mask[32 + 1] == (int)0xeeeeeeee && mask[32 + 7] == (int)0x88888888);
        Buffer<int> steps(64);
        halves<<<1, 32>>>(steps.at);
        auto half = steps.host();
        CHECK(half[0] == 0 + 16 + 17 && half[31] == 31 + 30 + 15);
        votes<<<1, 64>>>(steps.at, 10);
        CHECK(steps.host()[9] == 5);
        steps.set(std::vector<int>(64, 1));
        in_step<<<1, 32>>>(steps.at);
        auto step = steps.host();
        CHECK(step[0] == 1 && step[20] == 21 && step[31] == 32 && step[32] == 16);
        for (bool ask : {false, true}) {
            Buffer<int> in(1000), n(1), kept(1000);
            std::vector<int> all(1000);
            for (int i = 0; i < 1000; i++) all[i] = i;
            in.set(all);
            keep<<<7, 128>>>(in.at, n.at, kept.at, ask);
            auto k = kept.host();
            bool same = n.host()[0] == 299;
            for (int i = 0; i < 299; i++) same = same && k[i] == 3 * i;
            CHECK(same);
        }
        const int at = 45 * 16, lane = 45 - 32;
        CHECK(r[at] == 35 && r[at + 1] == 44 && r[at + 2] == 46 && r[at + 3] == 44 && r[at + 4] == 1);
        CHECK(r[47 * 16 + 2] == 47 && r[32 * 16 + 1] == 32);
        CHECK(r[at + 5] == 3 && r[at + 6] == 32 * 32 + 31 * 16 && r[at + 7] == 63 && r[at + 8] == 0xffff);
        CHECK(r[at + 9] == (lane < 16 ? 37 : 0) && r[at + 10] == 46 && r[at + 11] == 32 && r[at + 12] == -63);
    }
    {
        Buffer<__half> a(32), b(32);
        Buffer<__nv_bfloat16> c(32);
        Buffer<__half2> h(32);
        Buffer<float> sum(1);
        std::vector<__half> v(32);
        for (int i = 0; i < 32; i++) v[i] = __float2half(i);
        a.set(v);
        small<<<1, 32>>>(a.at, b.at, c.at, h.at, 32);
        CHECK(__half2float(b.host()[5]) == 6 && __bfloat162float(c.host()[7]) == 14);
        CHECK(__half2float(h.host()[4].y) == 10 && __half2float(b.host()[0]) == 2);
        half_sum<<<1, 32>>>(a.at, sum.at, b.at);
        CHECK(sum.host()[0] == 496 && __half2float(b.host()[0]) == 31 + 32);
    }
    {
        Buffer<float4> x(10), y(10);
        Buffer<Pack> z(10);
        std::vector<float4> v(10);
        for (int i = 0; i < 10; i++) v[i] = make_float4(i, i + 1, i + 2, i + 3);
        x.set(v);
        packs<<<1, 32>>>(x.at, y.at, z.at, 10);
        CHECK(y.host()[3].x == 4 && y.host()[3].w == 6 && z.host()[9].v[3] == 24);
    }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    printf("%s: %d cases\n", wrong ? "WRONG" : "OK", cases);
    return wrong != 0;
}
