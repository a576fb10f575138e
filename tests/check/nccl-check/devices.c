// Asks for devices, and for the version of NCCL: as much as runs without a GPU.
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>

int main(void) {
    int n, version;
    cudaError_t error = cudaGetDeviceCount(&n);
    printf("devices: %s\n", error == cudaSuccess ? "some" : "none");
    printf("NCCL: %d\n", (int)ncclGetVersion(&version));
    return 0;
}
