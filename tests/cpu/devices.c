/* Prints what the environment makes of the devices, for cpu.t to compare: the code and
 * the count, then each device's PCI bus id. */
#include <cuda_runtime.h>
#include <stdio.h>

int main(void) {
    int count = -1;
    cudaError_t error = cudaGetDeviceCount(&count);
    printf("%s %d", cudaGetErrorName(error), count);
    for (int d = 0; d < count; d++) {
        char bus[32] = "?";
        cudaDeviceGetPCIBusId(bus, sizeof bus, d);
        printf(" %s", bus);
    }
    if (error != cudaSuccess) {
        int device;
        void *memory;
        printf(" %s", cudaGetErrorName(cudaGetLastError()));
        printf(" %s", cudaGetErrorName(cudaMalloc(&memory, 4)));
        printf(" %s", cudaGetErrorName(cudaGetDevice(&device)));
    }
    printf("\n");
    return 0;
}
