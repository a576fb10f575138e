// A graph is launched after the memory that its call uses was freed. A graph keeps the
// address only.
// rank: all
// alone: a call returns 700
// expect: NCCL CHECK: memory: a graph is launched that uses memory which was freed
// expect: rank @any on @host: cudaGraphLaunch at @launch
// expect: captured: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call
// expect: made at ...:..., freed at @freed
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
#ifndef FIXED
    MUST(cudaFree(buf)); // @freed
#endif
    MUST(cudaGraphLaunch(executable, stream)); // @launch
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
#endif
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    finish();
    return 0;
}
