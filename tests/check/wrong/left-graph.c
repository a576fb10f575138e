// A graph and what was made of it to be launched are never destroyed. The real CUDA says
// nothing. (With a call of NCCL in the graph ncclCommDestroy would wait for it.)
// rank: all
// alone: exit code 0
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
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof *buf, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0)); // @instantiate
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
#ifdef FIXED
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
