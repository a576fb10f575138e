// A window is given back with ncclCommDeregister, which is for ncclCommRegister: NCCL
// refuses it, nobody looks, and the memory is freed while it is a window still.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: note: rank @any: ncclCommDeregister at @deregister returned
//     ncclInvalidUsage (5):
// expect: NCCL CHECK: memory: ncclMemFree frees a registered buffer
// expect: registered by ncclCommWindowRegister at
#include "../check.h"

int main(void) {
    start();
    ncclWindow_t window;
    int *buf = window_memory(64, &window);
    MUST(ncclAllReduce(buf, buf, 16, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    MUST(ncclCommWindowDeregister(comm, window));
#else
    ncclCommDeregister(comm, window); // @deregister
#endif
    MUST(ncclMemFree(buf));
    finish();
    return 0;
}
