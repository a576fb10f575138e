// A graph waits for an event from outside, and each launch for what it holds then
// (CUDA Runtime API, cudaStreamWaitEvent with cudaEventWaitExternal).
#include "../check.h"

int main(void) {
    start();
    cudaStream_t loader = new_stream();
    cudaEvent_t loaded, used;
    int *buf = device_ints(4, 0), *host;
    MUST(cudaMallocHost((void **)&host, 4 * sizeof(int)));
    MUST(cudaEventCreateWithFlags(&loaded, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    use_comm(comm);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaStreamWaitEvent(stream, loaded, cudaEventWaitExternal));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launchable, graph, 0));
    for (int step = 1; step <= 3; step++) {
        for (int i = 0; i < 4; i++)
            host[i] = step;
        MUST(cudaStreamWaitEvent(loader, used, 0));
        MUST(cudaMemcpyAsync(buf, host, 4 * sizeof(int), cudaMemcpyHostToDevice, loader));
        MUST(cudaEventRecord(loaded, loader));
        MUST(cudaGraphLaunch(launchable, stream));
        MUST(cudaEventRecord(used, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT_INTS(buf, 4, step * nranks);
    }
    MUST(cudaGraphExecDestroy(launchable));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaEventDestroy(loaded));
    MUST(cudaEventDestroy(used));
    MUST(cudaStreamDestroy(loader));
    MUST(cudaFreeHost(host));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
