// A file in memory is mapped and registered (CUDA refuses one on a disk), and cut short
// before the copy from it has run: behind its end a mapping has no memory.
//
// expect: NCCL CHECK: memory: a queued operation uses memory that is not mapped any more
//
// expect: rank 0 on @host: byte 0 of 65536 bytes of cudaHostRegister at @register
// expect: queued: cudaMemcpyAsync at @copy, which reads it
// exit: 135
#define _GNU_SOURCE
#include "../check.h"

#include <sys/mman.h>

enum { COUNT = 16384 };

int main(void) {
    start();
    int *buf = device_ints(COUNT, 1);
    size_t bytes = COUNT * sizeof *buf;
    int file = memfd_create("part", 0);
    MUST(ftruncate(file, (off_t)bytes));
    int *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault)); // @register
    MUST(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    if (rank == 0)
        MUST(ftruncate(file, 0));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaHostUnregister(host));
    MUST(munmap(host, bytes));
    close(file);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
