// The argument of a function in a graph is freed when the graph is made. Each launch
// gives the function that address again.
//
// expect: NCCL CHECK: memory: the argument of a function in a graph is given back before
//     the graph is launched
//
// expect: rank @any on @host: cudaLaunchHostFunc at @function
//
// expect: then comes cudaGraphLaunch at @launch, behind free at @free
#include "../check.h"

#include <stdlib.h>

static void count(void *launches) {
    ++*(int *)launches;
}

int main(void) {
    start();
    int *buf = device_ints(4, 1), *launches = calloc(1, sizeof *launches);
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
    MUST(cudaLaunchHostFunc(stream, count, launches)); // @function
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launchable, graph, 0));
    MUST(cudaGraphDestroy(graph));
#ifndef FIXED
    free(launches); // @free
#endif
    MUST(cudaGraphLaunch(launchable, stream)); // @launch
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(launchable));
#ifdef FIXED
    EXPECT(*launches, 1);
    free(launches);
#endif
    MUST(cudaFree(buf));
    finish();
    return 0;
}
