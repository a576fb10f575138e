// The communicator is destroyed, and a graph that holds a call on it is still there.
// ncclCommDestroy waits until the graph is destroyed too, which comes later: the real
// NCCL hangs.
// rank: all
// alone: hangs
// expect: NCCL CHECK: deadlock: ncclCommDestroy waits for a graph
// expect: rank ... on @host: ncclCommDestroy at @destroy, of communicator 1
// expect: captured: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call
// expect: the executable graph is still there, made by cudaGraphInstantiate at @made
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0)); // @made
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaGraphDestroy(graph));
#ifdef FIXED
    MUST(cudaGraphExecDestroy(executable));
    MUST(ncclCommDestroy(comm));
#else
    MUST(ncclCommDestroy(comm)); // @destroy
    MUST(cudaGraphExecDestroy(executable));
#endif
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
