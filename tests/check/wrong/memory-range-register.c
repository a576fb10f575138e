// A buffer is registered from its second half on, with the size of the whole.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclCommRegister runs past the end of its buffer
// expect: rank @any on @host: ncclCommRegister at @register, 4096 bytes from byte 2048 of
//     a buffer of 4096 bytes
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    char *buf;
    void *handle;
    MUST(cudaMalloc((void **)&buf, BYTES));
#ifdef FIXED
    MUST(ncclCommRegister(comm, buf, BYTES, &handle));
#else
    MUST(ncclCommRegister(comm, buf + BYTES / 2, BYTES, &handle)); // @register
#endif
    MUST(ncclCommDeregister(comm, handle));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
