// Communicators, streams, events and buffers that are made and released and never used.
#include "../check.h"

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    cudaEvent_t event;
    MUST(cudaEventCreate(&event));
    int *buf = device_ints(4, 0);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(buf));
    MUST(cudaEventDestroy(event));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
