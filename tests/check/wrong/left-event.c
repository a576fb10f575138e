// An event is never destroyed. The real CUDA says nothing.
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: @all: 1 event (made at @event)
#include "../check.h"

int main(void) {
    start();
    cudaEvent_t event;
    MUST(cudaEventCreate(&event)); // @event
#ifdef FIXED
    MUST(cudaEventDestroy(event));
#endif
    finish();
    return 0;
}
