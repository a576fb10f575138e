// A graph that holds a call is launched while the communicator is suspended: NCCL has
// given its buffers back. "The communicator cannot be used while suspended" (nccl.h).
// rank: all
// alone: a call returns 700
// expect: NCCL CHECK: setup: cudaGraphLaunch uses a communicator while it is suspended
// expect: rank @any on @host: cudaGraphLaunch at @launch
// expect: communicator 1 was suspended by ncclCommSuspend at @suspend
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommSuspend(comm, NCCL_SUSPEND_MEM)); // @suspend
#ifdef FIXED
    MUST(ncclCommResume(comm));
#endif
    MUST(cudaGraphLaunch(executable, stream)); // @launch
    MUST(cudaStreamSynchronize(stream));
#ifndef FIXED
    MUST(ncclCommResume(comm));
#endif
    EXPECT_INTS(buf, 4, nranks * nranks);
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
