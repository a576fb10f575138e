// Libraries of CUDA that kernels and their programs use, and arguments of many kinds.
#include <random>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstring>
#include <cub/cub.cuh>
#include <cuda/functional>
#include <cublasLt.h>
#include <cuda/atomic>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <nvml.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <vector>

namespace cg = cooperative_groups;
static int wrong, cases;
#define CHECK(condition)                                            \
    do {                                                            \
        cases++;                                                    \
        if (!(condition)) {                                         \
            printf("wrong at line %d: %s\n", __LINE__, #condition); \
            wrong++;                                                \
        }                                                           \
    } while (0)

template <class T> std::vector<T> host(const T *at, int n) {
    std::vector<T> v(n);
    cudaMemcpy(v.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost);
    return v;
}

// Arguments without members take no place for the compiler, but one in the launch.
struct Add {
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
namespace {
template <class T> struct Multiply {
    __device__ T operator()(T a, T b) const { return a * b; }
};
enum Color { RED = 7 };
struct One {
    char c;
};
} // namespace
template <class A, class B> __global__ void empty(A a, float3 v, B b, Color color, One one, float *out, A again) {
    out[0] = a(v.x, v.y) + b(v.z, (float)color) + one.c + again(1.0f, 2.0f);
}
template <class F, class G> __global__ void both(F f, G g, int n, float *out) {
    int i = threadIdx.x;
    if (i < n) out[i] = f(g(i));
}
static void empty_arguments(float *out) {
    empty<<<1, 1>>>(Add(), float3{1, 2, 3}, Multiply<float>(), RED, One{5}, out, Add());
    CHECK(host(out, 1)[0] == 3 + 21 + 5 + 3);
    float s = 3;
    both<<<1, 4>>>([] __device__(float x) { return x * x; }, [=] __device__(int i) { return i * s; }, 4, out);
    CHECK(host(out, 4)[3] == 81);
    both<<<1, 4>>>([=] __device__(float x) { return x * s; }, [] __device__(int i) { return i + 1.0f; }, 4, out);
    CHECK(host(out, 4)[3] == 12);
}

// The first thread gets the result, whether the threads wait or not.
template <int X, int Y> __global__ void block_sums(const float *in, float *out, int n) {
    using Reduce = cub::BlockReduce<float, X, cub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Reduce::TempStorage storage, storage2;
    int i = blockIdx.x * X * Y + threadIdx.y * X + threadIdx.x;
    float sum = Reduce(storage).Sum(i < n ? in[i] : 0);
    float most = Reduce(storage2).Reduce(i < n ? in[i] : 0, cub::Max());
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        atomicAdd(out, sum);
        out[1 + blockIdx.x] = most;
    }
}
template <int X> __global__ void block_most(const float *in, float *out, int n) {
    using Reduce = cub::BlockReduce<float, X>;
    __shared__ typename Reduce::TempStorage storage;
    __shared__ float most;
    int i = blockIdx.x * X + threadIdx.x;
    float value = Reduce(storage).Reduce(i < n ? in[i] : 0, cuda::maximum<>());
    if (threadIdx.x == 0) most = value;
    __syncthreads();
    if (i < n) out[i] = most;
}
__global__ void warp_sums(const float *in, float *out) {
    using Reduce = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage storage[4];
    float sum = Reduce(storage[threadIdx.x / 32]).Sum(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}
static void cub_library() {
    const int n = 1000;
    thrust::host_vector<float> h(n);
    for (int i = 0; i < n; i++) h[i] = (float)(i * 7 % 100);
    thrust::device_vector<float> in(h), out(n);
    float *a = thrust::raw_pointer_cast(in.data()), *b = thrust::raw_pointer_cast(&out[0]), sum = 0;
    for (float x : h) sum += x;
    block_sums<128, 1><<<8, 128>>>(a, b, n);
    CHECK(out[0] == sum && out[8] == 99);
    cudaMemset(b, 0, sizeof *b);
    block_sums<32, 8><<<4, dim3(32, 8)>>>(a, b, n);
    CHECK(out[0] == sum && out[4] == 99);
    block_most<256><<<4, 256>>>(a, b, n);
    CHECK(out[0] == 99 && out[n - 1] == 99);
    warp_sums<<<1, 128>>>(a, b);
    float part = 0;
    for (int i = 32; i < 64; i++) part += h[i];
    CHECK(out[1] == part);
    size_t bytes = 0;
    void *room = nullptr;
    cub::DeviceReduce::Sum(room, bytes, a, b, n);
    CHECK(bytes > 0);
    cudaMalloc(&room, bytes);
    cub::DeviceReduce::Sum(room, bytes, a, b, n);
    CHECK(out[0] == sum);
    cub::DeviceReduce::Max(room, bytes, a, b, n);
    CHECK(out[0] == 99);
    cub::DeviceReduce::Reduce(room, bytes, a, b, n, cuda::minimum<float>(), 5.f);
    CHECK(out[0] == 0);
    cub::DeviceReduce::Reduce(room, bytes, a, b, n, cuda::std::plus<>(), 1.f);
    CHECK(out[0] == sum + 1 && cuda::minimum<double>()(1, 2) / 2 == .5);
    cudaFree(room);
}

struct Square {
    __host__ __device__ float operator()(float x) const { return x * x; }
};
static void thrust_library() {
    thrust::host_vector<float> h(1000);
    for (int i = 0; i < 1000; i++) h[i] = (float)(i % 10);
    thrust::device_vector<float> v = h, two(3, 2.0f);
    v[3] = 30;
    CHECK(v[3] == 30 && two[2] == 2 && v.size() == 1000);
    thrust::transform(v.begin(), v.end(), v.begin(), Square());
    CHECK(thrust::reduce(v.begin(), v.end()) == 100 * 285 + 900 - 9);
    CHECK(thrust::reduce(v.begin(), v.end(), 0.0f, thrust::maximum<float>()) == 900);
    thrust::fill(v.begin(), v.begin() + 10, 1.0f);
    thrust::host_vector<float> g = v;
    CHECK(g[9] == 1 && g[11] == 1 && g[12] == 4);
    float *raw = thrust::raw_pointer_cast(v.data());
    thrust::fill(thrust::device, raw, raw + 20, 3.0f);
    thrust::device_ptr<float> p(raw);
    CHECK(thrust::reduce(p, p + 20) == 60);
    thrust::transform(p, p + 20, v.begin() + 20, p, thrust::plus<float>());
    CHECK(v[1] == 4 && v[4] == 19);
    v.resize(1001, 5.0f);
    CHECK(v[1000] == 5 && v[1] == 4);
}

__global__ void tiles(int *out) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    int sum = cg::reduce(warp, (int)block.thread_rank(), cg::plus<int>());
    int most = cg::reduce(four, (int)four.thread_rank() * 10, cg::greater<int>());
    block.sync();
    out[block.thread_rank()] = sum * 100 + most + warp.shfl((int)warp.meta_group_rank(), 0) +
                               four.shfl_down((int)four.thread_rank(), 1);
}
__global__ void count(cuda::atomic<int, cuda::thread_scope_device> *sum, float *most) {
    sum->fetch_add(2, cuda::memory_order_relaxed);
    cuda::atomic_ref<float, cuda::thread_scope_device>(*most).fetch_max((float)threadIdx.x);
}
__global__ void random_numbers(float *uniform, float *normal, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    curandState state;
    curand_init(1234, i, 0, &state);
    uniform[i] = curand_uniform(&state);
    normal[i] = curand_normal(&state);
}
__global__ void philox(unsigned *out) { // the known answer for the key and the counter 0
    curandStatePhilox4_32_10_t state;
    curand_init(0, 0, 0, &state);
    for (int i = 0; i < 8; i++) out[i] = curand(&state);
}
__global__ void eights(float *out) {
    out[0] = (float)__nv_fp8_e4m3(500.0f); // the largest
    out[1] = (float)__nv_fp8_e4m3(0.3f);
    out[2] = (float)__nv_fp8_e5m2(0.3f);
    out[3] = (float)__nv_fp8_e4m3(0x1p-9f * 1.4f); // the smallest
}
__global__ void assembly(unsigned long long *sum, const int *in, int *out) {
    int v;
    asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(in + threadIdx.x) : "memory");
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(sum), "l"((unsigned long long)v) : "memory");
    asm volatile("st.global.u32 [%0], %1;" ::"l"(out + threadIdx.x), "r"(v + 1) : "memory");
    asm volatile("membar.gl;");
}

__device__ __managed__ int counter = 5;
__managed__ static float halves[4];
__global__ void managed() {
    atomicAdd(&counter, 1);
    halves[threadIdx.x] = threadIdx.x / 2.0f;
}
static void managed_variables() {
    CHECK(counter == 5);
    managed<<<1, 4>>>();
    cudaDeviceSynchronize();
    CHECK(counter == 9 && halves[3] == 1.5f);
    counter = 100;
    void *none[] = {nullptr};
    CHECK(cudaLaunchCooperativeKernel((void *)managed, dim3(2), dim3(4), none, 0, 0) == cudaSuccess);
    cudaDeviceSynchronize();
    CHECK(counter == 108);
}

int main() {
    float *out;
    int *ints;
    cudaMalloc(&out, 400000 * sizeof *out);
    cudaMalloc(&ints, 64 * sizeof *ints);
    cudaMemset(out, 0, 4096);
    empty_arguments(out);
    managed_variables();
    cub_library();
    thrust_library();
    tiles<<<1, 64>>>(ints);
    CHECK(host(ints, 64)[0] == 49631 && host(ints, 64)[3] == 49633 && host(ints, 64)[33] == 152033);
    cuda::atomic<int, cuda::thread_scope_device> *sum;
    cudaMallocManaged(&sum, sizeof *sum);
    *sum = 0;
    count<<<4, 64>>>(sum, out);
    cudaDeviceSynchronize();
    CHECK(sum->load() == 512 && host(out, 1)[0] == 63);
    cudaFree(sum);
    random_numbers<<<400, 256>>>(out, out + 100000, 100000);
    thrust::device_ptr<float> u(out), normal(out + 100000);
    CHECK(fabs(thrust::reduce(u, normal) / 1e5 - 0.5) < 0.005);
    CHECK(fabs(thrust::reduce(normal, normal + 100000) / 1e5) < 0.02);
    thrust::transform(normal, normal + 100000, normal, Square());
    CHECK(fabs(thrust::reduce(normal, normal + 100000) / 1e5 - 1) < 0.03);
    philox<<<1, 1>>>((unsigned *)ints);
    CHECK((unsigned)host(ints, 4)[0] == 0x6627e8d5u && (unsigned)host(ints, 4)[3] == 0x9b00dbd8u);
    CHECK(host(ints, 8)[4] != host(ints, 8)[0]);
    eights<<<1, 1>>>(out);
    CHECK(host(out, 4)[0] == 448 && host(out, 4)[1] == 0.3125f && host(out, 4)[2] == 0.3125f);
    CHECK(host(out, 4)[3] == 0x1p-9f);
    cudaMemset(out, 0, 8);
    std::vector<int> few = {1, 2, 3, 4};
    cudaMemcpy(ints, few.data(), 16, cudaMemcpyHostToDevice);
    assembly<<<1, 4>>>((unsigned long long *)out, ints, ints + 4);
    CHECK(host((unsigned long long *)out, 1)[0] == 10 && host(ints, 8)[7] == 5);
    cublasLtHandle_t handle;
    CHECK(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS && cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    unsigned n;
    nvmlDevice_t device;
    char name[NVML_DEVICE_NAME_BUFFER_SIZE];
    CHECK(nvmlInit() == NVML_SUCCESS && nvmlDeviceGetCount(&n) == NVML_SUCCESS && n > 0);
    CHECK(nvmlDeviceGetHandleByIndex(0, &device) == NVML_SUCCESS);
    CHECK(nvmlDeviceGetName(device, name, sizeof name) == NVML_SUCCESS && strlen(name) > 0);
    CHECK(nvmlDeviceGetHandleByIndex(n, &device) != NVML_SUCCESS);
    cudaFree(out);
    cudaFree(ints);
    printf("%s: %d cases\n", wrong ? "WRONG" : "OK", cases);
    return wrong != 0;
}
