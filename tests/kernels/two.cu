// Two files by PART: the kernels of one call functions of the other.
#include <cstdio>
#include <cuda_runtime.h>

struct Three {
    float x, y, z;
};
__device__ void put(float **to, int i, Three value);
__host__ __device__ float square(float x);
#if PART == 1
namespace elsewhere {
extern __device__ int calls;
}
extern __constant__ float factor[2];
void prepare();
int calls();
__global__ void fill(float **to) {
    put(to, threadIdx.x, Three{1, 2, square(threadIdx.x) * factor[1]});
    atomicAdd(&elsewhere::calls, 1);
}
int main() {
    float *x, **to, h[4];
    cudaMalloc(&x, sizeof h);
    cudaMalloc(&to, sizeof x);
    cudaMemcpy(to, &x, sizeof x, cudaMemcpyHostToDevice);
    prepare();
    fill<<<1, 4>>>(to);
    cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
    cudaFree(x);
    cudaFree(to);
    bool right = h[0] == 3 && h[3] == 21 && square(2) == 4 && calls() == 11;
    printf("%s\n", right ? "OK" : "WRONG");
    return !right;
}
#else
namespace elsewhere {
__device__ int calls = 7;
}
__constant__ float factor[2];
void prepare() {
    float two[] = {0, 2};
    cudaMemcpyToSymbol(factor, two, sizeof two);
}
int calls() {
    int n = 0;
    cudaMemcpyFromSymbol(&n, elsewhere::calls, sizeof n);
    return n;
}
__device__ void put(float **to, int i, Three value) { (*to)[i] = value.x + value.y + value.z; }
__host__ __device__ float square(float x) { return x * x; }
#endif
