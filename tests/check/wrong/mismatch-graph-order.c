// A graph for each of two buckets of gradients. Each rank launches the graph of the
// bucket that is ready first, which is another one on the last rank. The calls look
// alike: the sum of one bucket is made of parts of both.
//
// expect: NCCL CHECK: mismatch: the ranks launch graphs of different captures at
//     operation 2 on communicator 1
//
// expect: rank 0 on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call, in a
//     graph, captured call 1 of the communicator
//
// expect: rank @last on @host: ncclAllReduce(count 4, ncclInt32, ncclSum) at @call, in a
//     graph, captured call 2 of the communicator
//
// expect: Hint: a launch is one of all these ranks, with the graph that came of the same
//     capture
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    int *bucket[2] = {device_ints(4, 1), device_ints(4, 10)};
    cudaGraphExec_t launchable[2];
    for (int i = 0; i < 2; i++) {
        cudaGraph_t graph;
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        // @call
        MUST(ncclAllReduce(bucket[i], bucket[i], 4, ncclInt32, ncclSum, comm, stream));
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&launchable[i], graph, 0));
        MUST(cudaGraphDestroy(graph));
    }
#ifdef FIXED
    int first = 0;
#else
    int first = rank == nranks - 1;
#endif
    MUST(cudaGraphLaunch(launchable[first], stream));
    MUST(cudaGraphLaunch(launchable[!first], stream));
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    EXPECT_INTS(bucket[0], 4, nranks);
    EXPECT_INTS(bucket[1], 4, 10 * nranks);
#endif
    for (int i = 0; i < 2; i++) {
        MUST(cudaGraphExecDestroy(launchable[i]));
        MUST(cudaFree(bucket[i]));
    }
    finish();
    return 0;
}
