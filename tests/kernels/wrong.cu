// Programs that are wrong, by number, each of which is named; and ones that look so and are right.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <nccl.h>

__global__ void scale(float *x, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] *= f;
}
__global__ void copy(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
__global__ void part(float *x, int from, int n) { // the whole buffer is given, a part is used
    int i = from + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < from + n)
        x[i] = i;
}
__global__ void turn(float *x, int n) { // threads that wait have lines, too
    __shared__ float all[256];
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        x[i + n] = all[255 - i];
}
__global__ void reverse(float *x) {
    extern __shared__ float all[];
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}
__global__ void divide(int *x, int by) {
    x[threadIdx.x] /= by;
}
__global__ void stride(float *x, int n) { // the commonest loop
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        x[i] = 1;
}
__global__ void wide(const float4 *x, float4 *y) {
    y[threadIdx.x] = x[threadIdx.x];
}
__global__ void plane(float *x, int w, int h) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < w && r < h / 64)
        x[r * 64 + c] = 1;
}
struct Matrix {
    float *at;
    int pitch;
};
__global__ void fill(Matrix m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        m.at[i] = i;
}

enum { N = 1 << 20 };

int main(int argc, char **argv) {
    int which = argc > 1 ? atoi(argv[1]) : 0, device = 0;
    ncclComm_t comm;
    ncclCommInitAll(&comm, 1, &device);
    float *x, *y, *host = (float *)malloc(N * sizeof(float));
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, N * sizeof(float));
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    switch (which) {
    case 0: // right: each half on its own stream
        ncclAllReduce(x, x, N / 2, ncclFloat, ncclSum, comm, a);
        copy<<<N / 512, 256, 0, b>>>(x + N / 2, y, N / 2);
        part<<<N / 512, 256, 0, b>>>(x, N / 2, N / 2);
        break;
    case 1: // right: what a kernel writes through a struct is written
        fill<<<N / 256, 256, 0, a>>>(Matrix{x}, N);
        cudaStreamSynchronize(a);
        cudaMemcpy(host, x, N * sizeof(float), cudaMemcpyDeviceToHost);
        if (host[N - 1] != N - 1)
            return 3;
        break;
    case 2: // one element too many
        scale<<<N / 256 + 1, 256, 0, a>>>(x, 2.f, N);
        break;
    case 3: // two streams
        ncclAllReduce(x, x, N, ncclFloat, ncclSum, comm, a);
        copy<<<N / 256, 256, 0, b>>>(x, y, N);
        break;
    case 4: // the host's memory
        copy<<<N / 256, 256, 0, a>>>(x, host, N);
        break;
    case 5: // freed
        cudaFree(y);
        copy<<<N / 256, 256, 0, a>>>(x, y, N);
        y = NULL;
        break;
    case 6: // it never ran
        copy<<<N / 256, 2560, 0, a>>>(x, y, N);
        break;
    case 7: // a kernel of another stream writes what is being sent
        copy<<<N / 256, 256, 0, b>>>(y, x, N);
        ncclAllReduce(x, y, N, ncclFloat, ncclSum, comm, a);
        break;
    case 8:
        turn<<<1, 256, 0, a>>>(x, N);
        break;
    case 9:
        divide<<<1, 32, 0, a>>>((int *)x, 0);
        break;
    case 10: // right: of an empty share no element is used, by none of these
        copy<<<1, 256, 0, a>>>(y, x, 0);
        stride<<<1, 256, 0, a>>>(x, 0);
        plane<<<1, 256, 0, a>>>(x, 64, 63);
        ncclAllReduce(x, x, N, ncclFloat, ncclSum, comm, b);
        cudaFree(y);
        copy<<<1, 256, 0, b>>>(y, NULL, 0);
        y = NULL;
        break;
    case 11:
        stride<<<64, 256, 0, a>>>(x, N);
        ncclAllReduce(x, x, N, ncclFloat, ncclSum, comm, b);
        break;
    case 12:
        wide<<<1, 32, 0, a>>>((const float4 *)(x + 1), (float4 *)y);
        break;
    case 13:
        part<<<1, 32, 0, a>>>(x, -8, 32);
        break;
    case 14:
        plane<<<1, 256, 0, a>>>(x, 64, 64);
        ncclAllReduce(x, x, N, ncclFloat, ncclSum, comm, b);
        break;
    case 15: // the last 700 elements
        stride<<<64, 256, 0, a>>>(x + 700, N);
        break;
    case 16: // right, and then without its third argument
        reverse<<<1, 256, 256 * sizeof(float), a>>>(x);
        if (cudaStreamSynchronize(a) != cudaSuccess)
            return 3;
        reverse<<<1, 256>>>(x);
        break;
    case 17: // bytes, not elements
        reverse<<<1, 256, 256, a>>>(x);
        break;
    case 18: // freed, and the checks don't see its address in the struct
        cudaFree(y);
        fill<<<N / 256, 256, 0, a>>>(Matrix{y}, N);
        y = NULL;
        break;
    }
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        return (int)error % 256;
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    ncclCommDestroy(comm);
    free(host);
    printf("through\n");
}
