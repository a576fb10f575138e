/* What there is not: memory, a device. Both are answered with an error, and said once. */
#include <cuda_runtime.h>
#include <stdio.h>

int main(void) {
    void *memory = NULL;
    cudaError_t error = cudaErrorMemoryAllocation;
    for (int i = 0; i < 3 && error == cudaErrorMemoryAllocation; i++)
        error = cudaMalloc(&memory, (size_t)3 << 20);
    printf("%s\n", cudaGetErrorName(error));
    if (memory)
        cudaFree(memory);
    for (int i = 0; i < 3; i++)
        printf("%s\n", cudaGetErrorName(cudaSetDevice(2)));
    return 0;
}
