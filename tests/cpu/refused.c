/* What there is not: memory, a device. Both are answered with an error, and said once. */
#include <nccl.h>
#include <stdio.h>

int main(void) {
    void *memory = NULL;
    cudaError_t error = cudaErrorMemoryAllocation;
    for (int i = 0; i < 3 && error == cudaErrorMemoryAllocation; i++)
        error = cudaMalloc(&memory, (size_t)3 << 20);
    printf("%s\n", cudaGetErrorName(error));
    if (memory)
        cudaFree(memory);
    struct cudaDeviceProp properties;
    printf("%s\n", cudaGetErrorName(cudaGetDeviceProperties(&properties, 2)));
    printf("%s\n", cudaGetErrorName(cudaSetDevice(2)));
    ncclComm_t comms[4];
    printf("%s\n", ncclGetErrorString(ncclCommInitAll(comms, 4, NULL)));
    return 0;
}
