// A communicator is used between ncclCommSuspend and ncclCommResume. "The communicator
// cannot be used while suspended" (nccl.h).
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: setup: ncclSignal uses a communicator while it is suspended
// expect: rank @any on @host: ncclSignal at @call
// expect: communicator 1 was suspended by ncclCommSuspend at @suspend
#include "../check.h"

int main(void) {
    enum { BYTES = 4096 };
    start();
    int next = (rank + 1) % nranks, before = (rank + nranks - 1) % nranks;
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = before};
    void *buf = window_memory(BYTES, &window);
    MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
#ifdef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(ncclSignal(next, 0, 0, 0, comm, stream)); // @call
#ifndef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(ncclWaitSignal(1, &one, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    end_window(buf, window);
    finish();
    return 0;
}
