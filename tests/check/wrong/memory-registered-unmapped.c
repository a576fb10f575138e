// Registered memory goes back to the system, as an allocator gives it back, before the
// copy from it has run. Whoever copies is stopped there.
//
// expect: NCCL CHECK: memory: a queued operation uses memory that is not mapped any more
//
// expect: rank 0 on @host: byte 0 of 262144 bytes of cudaHostRegister at @register
// expect: queued: cudaMemcpyAsync at @copy, which reads it
// exit: 139
#include "../check.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { COUNT = 65536 };

int main(void) {
    start();
    int *buf = device_ints(COUNT, 1);
    size_t bytes = COUNT * sizeof *buf;
    int *host =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault)); // @register
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaHostUnregister(host));
    MUST((int)syscall(SYS_munmap, host, bytes));
#else
    if (rank == 0)
        MUST((int)syscall(SYS_munmap, host, bytes));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaHostUnregister(host));
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
