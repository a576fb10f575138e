// All ranks abort the communicator, and a graph that holds a call on it is still there.
// ncclCommAbort waits until the graph is gone, as ncclCommDestroy does: seen on two H100.
// rank: all
// alone: hangs
// expect: NCCL CHECK: deadlock: ncclCommAbort waits for a graph
// expect: rank ... on @host: ncclCommAbort at @abort, of communicator 1
// expect: captured: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call
// expect: the executable graph is still there, made by cudaGraphInstantiate at @made
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @call
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0)); // @made
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
#ifdef FIXED
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    MUST(ncclCommAbort(comm));
#else
    MUST(ncclCommAbort(comm)); // @abort
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
#endif
    MUST(cudaFree(buf));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
