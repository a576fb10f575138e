// An event is asked about while a stream is captured in global mode, and the answer is
// only compared: what fails is the end of the capture.
// rank: all
// alone: a call returns 1
// exit: 3
// expect: NCCL CHECK: setup: cudaEventQuery has broken the capture of a stream
// expect: rank @any on @host: cudaEventQuery at @query
// expect: the capture: ends with an error, by cudaStreamEndCapture at @end
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    cudaGraph_t graph;
    cudaEvent_t event;
    use_comm(comm);
    MUST(cudaEventCreate(&event));
    MUST(cudaEventRecord(event, stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
#ifndef FIXED
    if (cudaEventQuery(event) == cudaSuccess) // @query
        printf("done\n");
#endif
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph)); // @end
    MUST(cudaGraphDestroy(graph));
    MUST(cudaEventDestroy(event));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
