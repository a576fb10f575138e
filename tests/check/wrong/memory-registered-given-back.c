// Memory of the program's own is registered, and freed while a copy from it is queued.
// What malloc gives out there next is copied.
//
// expect: NCCL CHECK: memory: free gives back memory that is registered with CUDA
//
// expect: rank 0 on @host: free at @free
// expect: registered by cudaHostRegister at @register
// expect: queued: cudaMemcpyAsync at @copy, which reads it
#include "../check.h"

enum { COUNT = 4096 };

int main(void) {
    start();
    int *buf = device_ints(COUNT, 1), *host = calloc(COUNT, sizeof *host);
    size_t bytes = COUNT * sizeof *buf;
    MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault)); // @register
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream)); // @copy
#ifndef FIXED
    if (rank == 0)
        free(host); // @free
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaHostUnregister(host));
#ifdef FIXED
    free(host);
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
