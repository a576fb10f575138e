// A graph and what was made of it to be launched are never destroyed. The real CUDA says
// nothing.
// exit: 0
// expect: NCCL CHECK: left behind: the program ends and has not released
// expect: @all: 1 graph (made at @capture), 1 executable graph (made at @instantiate)
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); // @capture
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0)); // @instantiate
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
#ifdef FIXED
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
