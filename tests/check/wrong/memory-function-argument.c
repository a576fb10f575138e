// What a function on a stream is to be given is taken back before the function runs. Here
// nothing is left at the address; often something else is, and nobody notices.
//
// expect: NCCL CHECK: memory: a function of cudaLaunchHostFunc uses an address where
//     nothing is
//
// expect: rank 0 on @host: at @use
// expect: the function: queued with cudaLaunchHostFunc at @queue
// exit: 139
#include "../check.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static void count(void *calls) {
    ++*(int *)calls; // @use
}

int main(void) {
    start();
    int *buf = device_ints(4, 1), *calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    if (rank == 0)
        MUST(cudaLaunchHostFunc(stream, count, calls)); // @queue
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MUST((int)syscall(SYS_munmap, calls, 4096)); // as an allocator does
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
