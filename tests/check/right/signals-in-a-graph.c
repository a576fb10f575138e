// Rank 1 waits for rank 0's signals in a graph that is launched, and nowhere else. On
// another communicator a graph has a signal, and is never launched.
#include "../check.h"

#ifdef CUDA_RUNTIME_H_CPU // NCCL has not been asked whether it can capture them
enum { ROUNDS = 3, BYTES = 4096 };

static void *window_of(ncclComm_t of, ncclWindow_t *window) {
    void *buf;
    MUST(ncclMemAlloc(&buf, BYTES));
    MUST(ncclCommWindowRegister(of, buf, BYTES, window, NCCL_WIN_COLL_SYMMETRIC));
    return buf;
}

static void signals(ncclComm_t of, int launches) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (rank == 0 && !launches)
        MUST(ncclSignal(1, 0, 0, 0, of, stream));
    else if (rank == 1 && launches)
        MUST(ncclWaitSignal(1, &one, of, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++) {
        if (rank == 0)
            MUST(ncclSignal(1, 0, 0, 0, of, stream));
        MUST(cudaGraphLaunch(exec, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

static void on_two_communicators(void) {
    ncclComm_t other;
    ncclWindow_t window, of_other;
    MUST(ncclCommSplit(comm, 0, rank, &other, NULL));
    void *buf = window_of(comm, &window), *more = window_of(other, &of_other);
    signals(comm, ROUNDS);
    signals(other, 0);
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclCommWindowDeregister(other, of_other));
    MUST(ncclMemFree(buf));
    MUST(ncclMemFree(more));
    MUST(ncclCommDestroy(other));
}
#else
static void on_two_communicators(void) {
}
#endif

int main(void) {
    start();
    on_two_communicators();
    finish();
    return 0;
}
