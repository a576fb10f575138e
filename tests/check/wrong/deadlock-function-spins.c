// A function on the stream looks at a variable, again and again, which the host sets
// behind cudaStreamSynchronize of the same stream. One all-reduce comes before: on an
// H200 the first launch of NCCL's kernel waits for functions on the stream, too.
//
// timeout: 1
// expect: NCCL CHECK: deadlock: a function on a stream waits for the host
// expect: rank @any on @host: waits in cudaStreamSynchronize at @wait for a function of
// expect: Hint: a function on a stream does not wait for what waits for the stream
#include "../check.h"

#include <sched.h>

static volatile int ready;

static void waits(void *unused) {
    (void)unused;
    while (!ready)
        sched_yield();
}

int main(void) {
    start();
    int *buf = device_ints(10, 1);
    MUST(ncclAllReduce(buf, buf, 10, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaLaunchHostFunc(stream, waits, NULL));
    MUST(ncclAllReduce(buf, buf, 10, ncclInt32, ncclSum, comm, stream));
#ifdef FIXED
    ready = 1;
#endif
    MUST(cudaStreamSynchronize(stream)); // @wait
    ready = 1;
    MUST(cudaFree(buf));
    finish();
    return 0;
}
