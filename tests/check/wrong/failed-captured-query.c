// The host waits for the launch of a graph with an event that was recorded in the
// capture. Such an event cannot be asked: the call fails, and what is not "not ready" is
// taken for done.
//
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: cudaEventQuery at @query returned
//     cudaErrorInvalidValue (1): invalid argument
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    cudaGraph_t graph;
    cudaGraphExec_t launched;
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
#ifndef FIXED
    MUST(cudaEventRecord(done, stream));
#endif
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launched, graph, 0));
    MUST(cudaGraphLaunch(launched, stream));
#ifdef FIXED
    MUST(cudaEventRecord(done, stream));
#endif
    while (cudaEventQuery(done) == cudaErrorNotReady) // @query
        usleep(100);
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaGraphExecDestroy(launched));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaEventDestroy(done));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
