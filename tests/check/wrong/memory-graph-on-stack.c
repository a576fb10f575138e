// A graph is captured in a function, from an array of that function. At each launch it
// copies what lies there then, and the function has returned.
//
// expect: NCCL CHECK: memory: host memory that is copied in a graph is a variable of a
//     function that has returned
//
// expect: rank @any on @host: cudaMemcpyAsync at @copy
//
// expect: then comes cudaGraphLaunch at @launch
#include "../check.h"

enum { N = 16 };

static __attribute__((noinline)) cudaGraphExec_t capture(int *buf) {
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
#ifdef FIXED
    static
#endif
        int ones[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    // @copy
    MUST(cudaMemcpyAsync(buf, ones, sizeof ones, cudaMemcpyHostToDevice, stream));
    MUST(ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launchable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return launchable;
}

int main(void) {
    start();
    int *buf = device_ints(N, 0);
    cudaGraphExec_t launchable = capture(buf);
    MUST(cudaGraphLaunch(launchable, stream)); // @launch
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    EXPECT_INTS(buf, N, nranks);
#endif
    MUST(cudaGraphExecDestroy(launchable));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
