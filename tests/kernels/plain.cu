// Plain kernels: many small cases in one program. Each prints nothing if it is right.
#include <cassert>
#include <cstdio>
#include <cstring>
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

template <class T> struct Buffer { // on the device
    T *at;
    int n;
    Buffer(int n) : n(n) { cudaMalloc(&at, n * sizeof(T)); }
    ~Buffer() { cudaFree(at); }
    std::vector<T> host() const {
        std::vector<T> v(n);
        cudaMemcpy(v.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
};

__global__ void iota(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}
__global__ void narrow(int *x, size_t n) { // the comparison begins with a value that has no name
    int i = (size_t)(blockIdx.x * blockDim.x + threadIdx.x) + n;
    if (i < 2000) x[i - 1000] += 1;
}
__global__ void stride(float *x, float v, size_t n) {
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        x[i] = v + i;
}
__global__ void where3(int *x) {
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    x[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = block * 1000 + thread;
}

struct Small { float *p; int n; };                 // passed in registers
struct Large { double pad[5]; float *p; int n; };  // passed in memory
struct Mixed { float a; int b; };
__global__ void structs(Small s, Large l, float4 v, float2 w, int3 t, Mixed m, bool b, char c, short h,
                        unsigned long long u, double d, double2 dd) {
    int i = threadIdx.x;
    if (i >= s.n) return;
    s.p[i] = v.x + v.w + w.y + t.z + m.a + m.b + (b ? 1 : 0) + c + h + (float)u + (float)d + (float)dd.y;
    l.p[i] = (float)l.pad[4] + i;
}

struct List { float *data; List *next; };
__global__ void follow(const List *head, float add) { // pointers in device memory
    for (const List *at = head; at; at = at->next)
        at->data[threadIdx.x] += add;
}
__global__ void swap_pointers(float **table) { // stores pointers
    float *a = table[0];
    table[0] = table[1];
    table[1] = a;
}

__device__ int counter = 5;
__device__ float squares[8];
__constant__ float factors[4];
__device__ __forceinline__ float times(float x, int k) { return x * factors[k]; }
__global__ void variables(float *x) {
    x[threadIdx.x] = times(2, threadIdx.x);
    squares[threadIdx.x] = threadIdx.x * threadIdx.x;
    if (threadIdx.x == 0) counter++;
}

template <class F> __global__ void each(int n, F f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}
template <class T, int N> __global__ void tuple(T *x) {
    T local[N];
    for (int i = 0; i < N; i++) local[i] = T(i) + threadIdx.x;
    T sum = 0;
    for (int i = 0; i < N; i++) sum += local[(i + threadIdx.x) % N];
    x[threadIdx.x] = sum;
}
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__host__ __device__ inline int both(int x) { return x * 3; }
__global__ void calls(int *x) { x[threadIdx.x] = fib(threadIdx.x) + both(threadIdx.x); }

struct Operation {
    __device__ virtual float apply(const float *x, float y) const = 0;
};
struct Twice : Operation {
    __device__ float apply(const float *x, float y) const override { return 2 * *x + y; }
};
__device__ float half_of(float x) { return x / 2; }
__global__ void pointers(float *x) {
    Twice twice;
    const Operation *o = &twice;
    float (*f)(float) = threadIdx.x % 2 ? half_of : half_of;
    const float it = threadIdx.x;
    x[threadIdx.x] = o->apply(&it, 0) + f(threadIdx.x);
}
__global__ void maths(float *x, double *y) {
    x[0] = sqrtf(16.f); x[1] = rsqrtf(4.f); x[2] = __expf(0.f); x[3] = fmaxf(1, 2); x[4] = min(3, 2);
    x[5] = __fdividef(6.f, 3.f); x[6] = fabs(-2.f); x[7] = __float2int_rn(2.5f); x[8] = max(1.5f, 2.f);
    x[9] = __popc(255); x[10] = __clz(1); x[11] = __ffs(8); x[12] = __mul24(3, 4); x[13] = powf(2, 3);
    x[14] = std::max(1, 2); x[15] = __int_as_float(0x3f800000); x[16] = __saturatef(3); x[17] = exp2f(3);
    x[18] = sin(0.f) + cosf(0); x[19] = __fmaf_rn(2, 3, 4); x[20] = __umulhi(1u << 31, 4); x[21] = __brev(1u) == 1u << 31;
    x[22] = isnan(0.f / x[30]) ? 1 : 0; x[23] = floorf(1.5f); x[24] = fma(1.f, 2.f, 3.f); x[25] = __powf(3, 2);
    x[26] = __ldg(&x[3]); x[27] = __byte_perm(0x03020100, 0x07060504, 0x5410) == 0x05040100; x[28] = __double2int_rz(3.9);
    y[0] = sqrt(2.0); y[1] = pow(2.0, 10); y[2] = tanh(0.0); y[3] = __longlong_as_double(0x3ff0000000000000LL);
    y[4] = __dadd_rn(1, 2); y[5] = rint(2.5); y[6] = normcdf(0.0); y[7] = fmod(5.0, 3.0);
}

static void stream_order() {
    cudaStream_t a, b;
    cudaEvent_t event;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    cudaEventCreate(&event);
    Buffer<float> x(1000);
    stride<<<4, 64, 0, a>>>(x.at, 1.f, 1000);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
    float *p = x.at;
    each<<<8, 128, 0, b>>>(1000, [=] __device__(int i) { p[i] *= 2; });
    CHECK(cudaStreamQuery(b) == cudaErrorNotReady || true);
    CHECK(cudaStreamSynchronize(b) == cudaSuccess);
    auto v = x.host();
    CHECK(v[0] == 2 && v[999] == 2000);
    cudaGraph_t graph;
    cudaGraphExec_t launch;
    cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal);
    each<<<8, 128, 0, a>>>(1000, [=] __device__(int i) { p[i] += 1; });
    stride<<<1, 1, 0, a>>>(p, 7.f, 1);
    CHECK(cudaStreamEndCapture(a, &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&launch, graph, 0) == cudaSuccess);
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(launch, a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(a) == cudaSuccess);
    v = x.host();
    CHECK(v[0] == 7 && v[999] == 2003);
    cudaGraphExecDestroy(launch);
    cudaGraphDestroy(graph);
    each<<<8, 128, 0, cudaStreamPerThread>>>(1000, [=] __device__(int i) { p[i] = i; });
    cudaStreamSynchronize(cudaStreamPerThread);
    CHECK(x.host()[999] == 999);
    cudaEventDestroy(event);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

// Loops whose step is the grid. Of these, the first three are run as one loop over the elements, in order.
__device__ int at_now;
#define FIRST int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x
__global__ void in_order(int *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        x[i] = atomicAdd(&at_now, 1);
}
__global__ void in_parts(int *x, size_t n) {
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)blockDim.x * gridDim.x;
    for (size_t i = first; i < n / 2; i += step)
        x[i] = atomicAdd(&at_now, 1);
    for (size_t i = n / 2 + first; i < n; i += step)
        x[i] = x[i - n / 2] % 2 ? atomicAdd(&at_now, 1) : -1;
}
__global__ void in_block(int *x, int n) { // blocks have a row each
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[blockIdx.x * n + i] = atomicAdd(&at_now, 1) + gridDim.x;
}
// And in these a thread does what no other may do for it.
__global__ void first_of(int *x, int n) {
    FIRST;
    for (int i = first; i < n; i += step)
        x[i] = first;
}
__global__ void next_of(int *x, int n) {
    FIRST;
    for (int i = first; i < n; i += step)
        x[i] = i + step;
}
__global__ void until(int *x, int n) {
    FIRST;
    for (int i = first; i < n; i += step) {
        if (i == 20) return;
        x[i] = 1;
    }
}
__global__ void some(int *x, int n, int m) {
    FIRST;
    if (first < m)
        for (int i = first; i < n; i += step)
            x[i] = 1;
    else
        for (int i = first; i < n / 2; i += step)
            x[i] = 2;
}
__global__ void number(int *x, int n) {
    FIRST;
    for (int i = first; i < n; i += step)
        x[i] = 1;
    atomicAdd(&at_now, 1);
}
__global__ void sums(int *x, int n) {
    FIRST;
    int sum = 0;
    for (int i = first; i < n; i += step)
        x[i] = sum += i;
}
__global__ void before_first(int *x, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x - 5; i < n; i += blockDim.x * gridDim.x)
        x[i] = 1;
}
__global__ void twice_first(int *x, int n) {
    FIRST;
    for (int i = first; i < 2; i += step)
        for (int j = first; j < n; j += step)
            x[j] += 1;
}
__global__ void own_end(int *x, int n) {
    for (int i = threadIdx.x; i < n - 2 * (int)threadIdx.x; i += blockDim.x)
        x[i] = 1;
}
static void grid_loops() {
    enum { N = 100, STEP = 32 };
    Buffer<int> x(N);
    auto as = [&](auto launch, auto expect) {
        int zero = 0, other = 0;
        cudaMemcpyToSymbol(at_now, &zero, sizeof zero);
        cudaMemset(x.at, 0, N * sizeof(int));
        launch();
        auto v = x.host();
        for (int i = 0; i < N; i++)
            other += v[i] != expect(i);
        return other == 0;
    };
    CHECK(as([&] { in_order<<<4, 8>>>(x.at, N); }, [](int i) { return i; }));
    CHECK(as([&] { in_parts<<<4, 8>>>(x.at, N); }, [](int i) { return i < 50 ? i : i % 2 ? 50 + (i - 50) / 2 : -1; }));
    CHECK(as([&] { in_block<<<4, 8>>>(x.at, N / 4); }, [](int i) { return i + 4; }));
    CHECK(as([&] { first_of<<<4, 8>>>(x.at, N); }, [](int i) { return i % STEP; }));
    CHECK(as([&] { next_of<<<4, 8>>>(x.at, N); }, [](int i) { return i + STEP; }));
    CHECK(as([&] { until<<<4, 8>>>(x.at, N); }, [](int i) { return i < 20 || i % STEP != 20; }));
    CHECK(as([&] { some<<<4, 8>>>(x.at, N, 3); }, [](int i) { return i % STEP < 3 ? 1 : i < N / 2 ? 2 : 0; }));
    CHECK(as([&] { sums<<<4, 8>>>(x.at, N); }, [](int i) { return (i % STEP + i) * (i / STEP + 1) / 2; }));
    CHECK(as([&] { before_first<<<4, 8>>>(x.at, N); }, [](int i) { return i % STEP < STEP - 5; }));
    CHECK(as([&] { twice_first<<<4, 8>>>(x.at, N); }, [](int i) { return i % STEP < 2; }));
    CHECK(as([&] { own_end<<<1, 8>>>(x.at, N); }, [](int i) { return i < N - 2 * (i % 8); }));
    CHECK(as([&] { number<<<4, 8>>>(x.at, N); }, [](int) { return 1; }));
    int n = 0;
    cudaMemcpyFromSymbol(&n, at_now, sizeof n);
    CHECK(n == STEP);
}

static void wrong_launches() {
    Buffer<int> x(10);
    iota<<<1, 1025>>>(x.at, 10);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaSuccess);
    iota<<<0, 32>>>(x.at, 10);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    iota<<<1, dim3(1, 1, 65)>>>(x.at, 10);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    iota<<<dim3(1, 65536), 1>>>(x.at, 10);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    iota<<<1, 10, 48 * 1024 + 1>>>(x.at, 10);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFuncSetAttribute(iota, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000) == cudaSuccess);
    iota<<<1, 10, 100000>>>(x.at, 10);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(x.host()[9] == 9);
    void *arguments[] = {&x.at, &x.n};
    CHECK(cudaLaunchKernel((void *)wrong_launches, dim3(1), dim3(1), arguments, 0, 0) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    CHECK(cudaLaunchKernel((void *)iota, dim3(1), dim3(16), arguments, 0, 0) == cudaSuccess);
    CHECK(x.host()[5] == 5);
}

int main() {
    {
        Buffer<int> x(1000);
        iota<<<8, 128>>>(x.at, 1000);
        auto v = x.host();
        CHECK(v[0] == 0 && v[999] == 999);
        narrow<<<8, 128>>>(x.at, 1000);
        CHECK(x.host()[999] == 1000);
        where3<<<{2, 3, 2}, {4, 2, 3}>>>(x.at);
        v = x.host();
        CHECK(v[0] == 0 && v[11 * 24 + 23] == 11023 && v[5 * 24 + 7] == 5007);
        calls<<<1, 12>>>(x.at);
        CHECK(x.host()[11] == 89 + 33);
    }
    {
        Buffer<float> x(64), y(64);
        structs<<<1, 64>>>(Small{x.at, 60}, Large{{0, 0, 0, 0, 5}, y.at, 60}, make_float4(1, 0, 0, 2),
                           make_float2(0, 3), make_int3(0, 0, 4), Mixed{5, 6}, true, 2, 3, 4, 5, make_double2(0, 6));
        CHECK(x.host()[59] == 1 + 2 + 3 + 4 + 5 + 6 + 1 + 2 + 3 + 4 + 5 + 6);
        CHECK(y.host()[7] == 12);
        variables<<<1, 4>>>(x.at); // factors are 0 still
        float f[4] = {1, 2, 3, 4}, s[8];
        CHECK(cudaMemcpyToSymbol(factors, f, sizeof f) == cudaSuccess);
        variables<<<1, 4>>>(x.at);
        CHECK(x.host()[3] == 8);
        int c = 0;
        cudaMemcpyFromSymbol(&c, counter, sizeof c);
        CHECK(c == 7);
        cudaMemcpyFromSymbol(s, squares, sizeof s);
        CHECK(s[3] == 9);
        float *address;
        CHECK(cudaGetSymbolAddress((void **)&address, squares) == cudaSuccess);
        stride<<<1, 8>>>(address, 10, 8);
        cudaMemcpyFromSymbol(s, squares, sizeof s);
        CHECK(s[7] == 17);
        tuple<int, 5><<<1, 4>>>((int *)x.at);
        int t[4];
        cudaMemcpy(t, x.at, sizeof t, cudaMemcpyDeviceToHost);
        CHECK(t[2] == 20);
        pointers<<<1, 4>>>(x.at);
        CHECK(x.host()[3] == 7.5f);
    }
    {
        Buffer<float> a(8), b(8);
        Buffer<List> nodes(2);
        List list[2] = {{a.at, nodes.at + 1}, {b.at, nullptr}};
        cudaMemcpy(nodes.at, list, sizeof list, cudaMemcpyHostToDevice);
        stride<<<1, 8>>>(a.at, 0, 8);
        stride<<<1, 8>>>(b.at, 1, 8);
        follow<<<1, 8>>>(nodes.at, 100);
        CHECK(a.host()[7] == 107 && b.host()[7] == 108);
        Buffer<float *> table(2);
        float *rows[2] = {a.at, b.at};
        cudaMemcpy(table.at, rows, sizeof rows, cudaMemcpyHostToDevice);
        swap_pointers<<<1, 1>>>(table.at);
        auto v = table.host();
        CHECK(v[0] == b.at && v[1] == a.at);
    }
    {
        Buffer<float> x(64);
        Buffer<double> y(8);
        cudaMemset(x.at, 0, 256);
        maths<<<1, 1>>>(x.at, y.at);
        auto v = x.host();
        const float expect[29] = {4, .5, 1, 2, 2, 2, 2, 2, 2, 8, 31, 4, 12, 8, 2, 1, 1, 8, 1, 10, 2, 1, 1, 1, 5, 9, 2, 1, 3};
        for (int i = 0; i < 29; i++)
            if (v[i] != expect[i]) printf("maths %d: %g, not %g\n", i, v[i], expect[i]), wrong++;
        auto w = y.host();
        CHECK(w[1] == 1024 && w[3] == 1 && w[4] == 3 && w[5] == 2 && w[6] == 0.5 && w[7] == 2);
    }
    {
        float *managed, *pinned;
        cudaMallocManaged(&managed, 4096);
        cudaMallocHost(&pinned, 4096);
        stride<<<2, 128>>>(managed, 1, 1024);
        stride<<<2, 128>>>(pinned, 2, 1024);
        cudaDeviceSynchronize();
        CHECK(managed[1023] == 1024 && pinned[0] == 2);
        cudaFree(managed);
        cudaFreeHost(pinned);
    }
    stream_order();
    grid_loops();
    wrong_launches();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    printf("%s: %d cases\n", wrong ? "WRONG" : "OK", cases);
    return wrong != 0;
}
