// A window is said to be larger than the memory: its size is a number of bytes, and the
// memory was made for elements of another type.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclCommWindowRegister runs past the end of its buffer
// expect: rank @any on @host: ncclCommWindowRegister at @register, 8192 bytes from byte 0
//     of a buffer of 4096 bytes
// expect: the buffer: device memory made at @alloc
#include "../check.h"

int main(void) {
    enum { N = 1024 };
    start();
    void *memory;
    ncclWindow_t window;
#ifdef FIXED
    MUST(ncclMemAlloc(&memory, N * sizeof(double)));
#else
    MUST(ncclMemAlloc(&memory, N * sizeof(float))); // @alloc
#endif
    MUST(ncclCommWindowRegister(comm, memory, N * sizeof(double), &window, // @register
                                NCCL_WIN_COLL_SYMMETRIC));
    end_window(memory, window);
    finish();
    return 0;
}
