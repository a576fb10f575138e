// Ranks that have not captured equally often: one captures once to try it, and throws it
// away. Two graphs are launched by all in one order, one is captured anew by all; and the
// ranks capture the graphs of two communicators in a different order.
#include "../check.h"

static cudaGraphExec_t captured(ncclComm_t on, int *buf) {
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, on, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launchable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return launchable;
}

static void launch(cudaGraphExec_t launchable, int times) {
    for (int i = 0; i < times; i++)
        MUST(cudaGraphLaunch(launchable, stream));
    MUST(cudaStreamSynchronize(stream));
}

int main(void) {
    start();
    ncclComm_t other = new_comm(MPI_COMM_WORLD), third = new_comm(MPI_COMM_WORLD);
    use_comm(comm);
    use_comm(other);
    use_comm(third);
    int *a = device_ints(4, rank), *b = device_ints(4, 10 * rank);

    // The same captures on all ranks.
    cudaGraphExec_t one = captured(comm, a), two = captured(comm, b);
    launch(one, 3);
    launch(two, 3);
    MUST(cudaGraphExecDestroy(one));
    one = captured(comm, a);
    launch(two, 2);
    launch(one, 2);
    MUST(cudaGraphExecDestroy(one));
    MUST(cudaGraphExecDestroy(two));

    // Once more on one rank.
    if (rank == 0)
        MUST(cudaGraphExecDestroy(captured(comm, a)));
    one = captured(comm, a);
    launch(one, 3);
    MUST(cudaGraphExecDestroy(one));

    // Two communicators.
    one = rank ? captured(other, a) : NULL;
    two = captured(third, b);
    if (rank == 0)
        one = captured(other, a);
    launch(one, 2);
    launch(two, 2);
    MUST(cudaGraphExecDestroy(one));
    MUST(cudaGraphExecDestroy(two));

    EXPECT_INTS(a, 4, nranks - 1);
    EXPECT_INTS(b, 4, 10 * (nranks - 1));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(ncclCommDestroy(third));
    MUST(ncclCommDestroy(other));
    finish();
    return 0;
}
