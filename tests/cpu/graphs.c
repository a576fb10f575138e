/*
 * Graphs in one process, without MPI: the order of launches, of branches, and what a
 * capture refuses. CUDA Runtime API, "Graph Management"; CUDA Programming Guide,
 * "Creating a Graph Using Stream Capture".
 */
#define TAP_ALONE
#include "ints.h"
#include <stdatomic.h>
#include <unistd.h>

enum { N = 1000, BYTES = N * (int)sizeof(int) };

static cudaStream_t one, two;
static cudaEvent_t fork_event, join_event;

static void take_long(void *unused) {
    (void)unused;
    usleep(30000);
}

static cudaGraphExec_t end_capture(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* Each launch copies what the one before it left: they must not mix. */
static void launches_follow_one_another(void) {
    int *a = new_ints(N), *b = new_ints(N), *host;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemcpyAsync(a, b, BYTES, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaLaunchHostFunc(one, take_long, NULL));
    CUDA(cudaMemsetAsync(b, 3, BYTES, one));
    cudaGraphExec_t exec = end_capture(one);
    for (int order = 0; order < 2; order++) {
        cudaStream_t first = order ? two : one, second = order ? one : two;
        CUDA(cudaLaunchHostFunc(first, take_long, NULL));
        CUDA(cudaMemsetAsync(b, 5, BYTES, first));
        CUDA(cudaGraphLaunch(exec, first));
        CUDA(cudaGraphLaunch(exec, second)); /* after it, though on another stream */
        CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, second));
        CUDA(cudaStreamSynchronize(second));
        expect_all(host, N, 0x03030303, "after two launches on two streams");
        CUDA(cudaStreamSynchronize(first));
    }
    CUDA(cudaGraphLaunch(exec, one));
    CUDA(cudaGraphExecDestroy(exec)); /* the launch goes on */
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFreeHost(host));
    point("launches of one executable graph follow one another on two streams");
}

static atomic_int met;

/* Functions run one after another, but beside the operations of other branches. */
static void meet_the_other(void *pinned) {
    volatile int *flag = pinned;
    for (int i = 0; i < 2000 && *flag == 0; i++)
        usleep(1000);
    atomic_fetch_add(&met, *flag != 0);
}

/* Two branches may run side by side; what joins them comes after both. */
static void branches(void) {
    int *a = new_ints(N), *b = new_ints(N), *c = new_ints(2 * N), *flag;
    CUDA(cudaMallocHost((void **)&flag, sizeof *flag));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemsetAsync(c, 0, 2 * BYTES, one));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA(cudaStreamWaitEvent(two, fork_event, 0));
    CUDA(cudaLaunchHostFunc(one, meet_the_other, flag));
    CUDA(cudaMemsetAsync(a, 1, BYTES, one));
    CUDA(cudaMemsetAsync(flag, 1, sizeof *flag, two));
    CUDA(cudaLaunchHostFunc(two, take_long, NULL));
    CUDA(cudaMemsetAsync(b, 2, BYTES, two));
    CUDA(cudaEventRecord(join_event, two));
    CUDA(cudaStreamWaitEvent(one, join_event, 0));
    CUDA(cudaMemcpyAsync(c, a, BYTES, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaMemcpyAsync(c + N, b, BYTES, cudaMemcpyDeviceToDevice, one));
    cudaGraphExec_t exec = end_capture(one);
    for (int round = 0; round < 3; round++) {
        CUDA(cudaMemset(a, 9, BYTES));
        CUDA(cudaMemset(b, 9, BYTES));
        CUDA(cudaDeviceSynchronize());
        *flag = 0;
        CUDA(cudaGraphLaunch(exec, round % 2 ? two : one));
        CUDA(cudaStreamSynchronize(round % 2 ? two : one));
        expect(atomic_load(&met) == round + 1, "the branches did not meet");
        expect_ints(c, N, 0x01010101, "first branch");
        expect_ints(c + N, N, 0x02020202, "second branch");
    }
    point("two branches run side by side, and join");

    /* The graph as a part of another one. */
    cudaGraph_t graph = NULL;
    cudaGraphExec_t outer;
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemsetAsync(a, 7, BYTES, one));
    CUDA(cudaGraphLaunch(exec, one));
    CUDA(cudaMemcpyAsync(a, c + N, BYTES, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaStreamEndCapture(one, &graph));
    CUDA(cudaGraphInstantiate(&outer, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaMemset(c, 9, 2 * BYTES));
    CUDA(cudaDeviceSynchronize());
    *flag = 0;
    CUDA(cudaGraphLaunch(outer, one));
    CUDA(cudaStreamSynchronize(one));
    expect_ints(a, N, 0x02020202, "copied behind the inner graph");
    expect_ints(c, N, 0x01010101, "first branch of the inner graph");
    CUDA(cudaGraphExecDestroy(outer));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
    CUDA(cudaFreeHost(flag));
    point("a graph launched into another one");
}

/* An H200 does so, too. */
static void reads_the_host(void) {
    int *a = new_ints(N), *host = malloc(BYTES);
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, one));
    cudaGraphExec_t exec = end_capture(one);
    for (int round = 1; round < 4; round++) {
        memset(host, round, BYTES);
        CUDA(cudaGraphLaunch(exec, one));
        CUDA(cudaStreamSynchronize(one));
        expect_ints(a, N, 0x01010101 * round, "of the host's memory at the launch");
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaFree(a));
    free(host);
    point("a captured copy reads the host's memory at each launch");
}

/* A graph that allocates and frees, launched again: each time the memory is there, and
 * new. CUDA Programming Guide, "Graph Memory Nodes". */
static void allocates(void) {
    int *a, *out = new_ints(2 * N), *host = malloc(BYTES);
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMallocAsync((void **)&a, BYTES, one));
    CUDA(cudaMemcpyAsync(out + N, a, BYTES, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaMemsetAsync(a, 3, BYTES, one));
    CUDA(cudaMemcpyAsync(out, a, BYTES, cudaMemcpyDeviceToDevice, one));
    CUDA(cudaFreeAsync(a, one));
    cudaGraphExec_t exec = end_capture(one);
    for (int round = 0; round < 3; round++) {
        CUDA(cudaMemsetAsync(out, 9, 2 * BYTES, one));
        CUDA(cudaGraphLaunch(exec, one));
        CUDA(cudaStreamSynchronize(one));
        expect_ints(out, N, 0x03030303, "of memory that the graph has allocated");
        CUDA(cudaMemcpy(host, out + N, BYTES, cudaMemcpyDeviceToHost));
        expect(host[0] != 0x03030303 && host[N - 1] != 0x03030303,
               "launch %d finds what the one before has left", round + 1);
    }
    size_t before, during, after, all;
    CUDA(cudaMemGetInfo(&during, &all));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaMemGetInfo(&after, &all));
    expect(after > during, "the graph is gone, and its memory is not");

    /* Freed outside of the graph: it is there until then. */
    CUDA(cudaMemGetInfo(&before, &all));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA(cudaMallocAsync((void **)&a, BYTES, one));
    CUDA(cudaMemsetAsync(a, 4, BYTES, one));
    exec = end_capture(one);
    for (int round = 0; round < 2; round++) {
        CUDA(cudaGraphLaunch(exec, one));
        CUDA(cudaMemcpyAsync(out, a, BYTES, cudaMemcpyDeviceToDevice, one));
        CUDA(cudaFreeAsync(a, one));
        CUDA(cudaStreamSynchronize(one));
        expect_ints(out, N, 0x04040404, "of memory that is freed behind the graph");
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaMemGetInfo(&after, &all));
    expect(after == before, "%zu bytes are left over", before - after);
    CUDA(cudaFree(out));
    free(host);
    point("a graph allocates memory, and is launched again");
}

/* Each of these spoils the capture: a graph is refused with this code at its end. */
static void spoilt(cudaError_t code, cudaStream_t stream, const char *what) {
    cudaGraph_t graph = (cudaGraph_t)&graph;
    enum cudaStreamCaptureStatus status;
    cudaError_t got = cudaStreamEndCapture(stream, &graph);
    expect(got == code, "%s: cudaStreamEndCapture returned %s, expected %s", what,
           cudaGetErrorName(got), cudaGetErrorName(code));
    expect(graph == NULL, "%s: there is a graph", what);
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusNone, "%s: status %d", what, (int)status);
    cudaGetLastError();
}

static void refused(void) {
    int *a = new_ints(N), *more;
    float ms;
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA(cudaStreamWaitEvent(two, fork_event, 0));
    CUDA(cudaMemsetAsync(a, 1, BYTES, two));
    CUDA(cudaStreamIsCapturing(two, &status));
    expect(status == cudaStreamCaptureStatusActive, "the second stream: %d", (int)status);
    spoilt(cudaErrorStreamCaptureUnjoined, one, "unjoined");
    CUDA(cudaMemsetAsync(a, 1, BYTES, two));
    CUDA(cudaStreamSynchronize(two)); /* is itself again */
    point("a branch that does not join");

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA(cudaStreamWaitEvent(two, fork_event, 0));
    CUDA_IS(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(two, &graph));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "ended by another stream");
    point("a capture ended by a stream that joined it");

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA_IS(cudaErrorCapturedEvent, cudaEventElapsedTime(&ms, fork_event, fork_event));
    CUDA(cudaGraphExecDestroy(end_capture(one)));
    CUDA_IS(cudaErrorInvalidValue, cudaEventElapsedTime(&ms, fork_event, fork_event));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA_IS(cudaErrorCapturedEvent, cudaEventQuery(fork_event));
    CUDA_IS(cudaErrorInvalidValue, cudaEventQuery(fork_event));
    CUDA_IS(cudaErrorInvalidValue, cudaEventSynchronize(fork_event));
    CUDA_IS(cudaErrorInvalidValue, cudaEventElapsedTime(&ms, fork_event, fork_event));
    CUDA_IS(cudaErrorInvalidValue, cudaStreamWaitEvent(two, fork_event, 0));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "asked about a captured event");
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA_IS(cudaErrorCapturedEvent, cudaEventSynchronize(fork_event));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "waited for a captured event");
    CUDA_IS(cudaErrorInvalidValue, cudaEventSynchronize(fork_event)); /* still */
    CUDA_IS(cudaErrorInvalidValue, cudaStreamWaitEvent(two, fork_event, 0));
    CUDA(cudaEventRecord(fork_event, two)); /* and an event like any other again */
    CUDA(cudaEventSynchronize(fork_event));
    cudaGetLastError();
    point("an event that was recorded in a capture can't be asked");

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA_IS(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(one, fork_event, 0));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "waited for what is outside");
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaStreamBeginCapture(two, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA_IS(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(two, fork_event, 0));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "merged");
    spoilt(cudaErrorStreamCaptureInvalidated, two, "merged");
    point("a capture that would wait for uncaptured work, or for another capture");

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaMalloc((void **)&more, 4));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "cudaMalloc");
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaMalloc((void **)&more, 4));
    CUDA(cudaFree(more));
    cudaGraphExec_t exec = end_capture(one);
    CUDA(cudaGraphExecDestroy(exec));
    point("allocation during a capture");

    /* A stream that goes while it is captured takes nothing with it. */
    cudaStream_t three;
    CUDA(cudaStreamCreate(&three));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA(cudaStreamWaitEvent(three, fork_event, 0));
    CUDA(cudaMemsetAsync(a, 1, BYTES, three));
    CUDA(cudaStreamDestroy(three));
    spoilt(cudaErrorStreamCaptureInvalidated, one, "a stream destroyed");
    CUDA(cudaFree(a));
    point("a captured stream is destroyed");
}

/* Calls beside a capture, on a stream that has no part in it. */
static char page[4096];
static void *pinned, *device_memory, *of_pool, *more;
static cudaError_t ask_event(void) {
    return cudaEventQuery(join_event);
}
static cudaError_t wait_event(void) {
    return cudaEventSynchronize(join_event);
}
static cudaError_t ask_stream(void) {
    return cudaStreamQuery(two);
}
static cudaError_t wait_stream(void) {
    return cudaStreamSynchronize(two);
}
static cudaError_t ask_legacy(void) {
    return cudaStreamQuery(0);
}
static cudaError_t allocate(void) {
    return cudaMalloc(&more, 4);
}
static cudaError_t give_back(void) {
    return cudaFree(device_memory);
}
static cudaError_t allocate_pinned(void) {
    return cudaMallocHost(&more, 4);
}
static cudaError_t give_pinned_back(void) {
    return cudaFreeHost(pinned);
}
static cudaError_t allocate_async(void) {
    return cudaMallocAsync(&more, 4, two);
}
static cudaError_t give_back_async(void) {
    return cudaFreeAsync(of_pool, two);
}
static cudaError_t register_page(void) {
    return cudaHostRegister(page, sizeof page, 0);
}
static cudaError_t record(void) {
    return cudaEventRecord(join_event, two);
}
static cudaError_t wait_for_event(void) {
    return cudaStreamWaitEvent(two, join_event, 0);
}
static cudaError_t set(void) {
    return cudaMemsetAsync(device_memory, 0, 4, two);
}
static cudaError_t ask_for_room(void) {
    size_t room, all;
    return cudaMemGetInfo(&room, &all);
}

static cudaError_t (*beside)(void);
static void *call_beside(void *result) {
    *(cudaError_t *)result = beside();
    return NULL;
}

/* Which of them spoil it, as seen on an H200; in which thread, and with which mode, as
 * CUDA Runtime API says of cudaStreamBeginCapture. */
static void beside_a_capture(void) {
    enum { FORBIDDEN = 12, CALLS = 16, MODES = 3 };
    static cudaError_t (*const calls[CALLS])(void) = {
        ask_event,       wait_event,    ask_stream,      wait_stream,      ask_legacy,
        allocate,        give_back,     allocate_pinned, give_pinned_back, allocate_async,
        give_back_async, register_page, record,          wait_for_event,   set,
        ask_for_room};
    for (int i = 0; i < CALLS * MODES * 2; i++) {
        int call = i / (MODES * 2), capture = i / 2 % MODES;
        bool other = i % 2,
             forbidden = call < FORBIDDEN && capture != cudaStreamCaptureModeRelaxed &&
                         (!other || capture == cudaStreamCaptureModeGlobal);
        cudaError_t got;
        pthread_t thread;
        cudaGraph_t graph = NULL;
        CUDA(cudaMalloc(&device_memory, 4));
        CUDA(cudaMallocHost(&pinned, 4));
        CUDA(cudaMallocAsync(&of_pool, 4, two));
        CUDA(cudaEventRecord(join_event, two));
        CUDA(cudaStreamSynchronize(two));
        beside = calls[call];
        more = NULL;
        CUDA(cudaStreamBeginCapture(one, (enum cudaStreamCaptureMode)capture));
        if (other && pthread_create(&thread, NULL, call_beside, &got) == 0)
            pthread_join(thread, NULL);
        else
            call_beside(&got);
        cudaError_t end = cudaStreamEndCapture(one, &graph);
        expect(got == (forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess) &&
                   end == (forbidden ? cudaErrorStreamCaptureInvalidated : cudaSuccess),
               "call %d in mode %d, thread %d: %s, then %s", call, capture, (int)other,
               cudaGetErrorName(got), cudaGetErrorName(end));
        cudaGetLastError();
        if (graph)
            CUDA(cudaGraphDestroy(graph));
        if (call != 6 || forbidden)
            CUDA(cudaFree(device_memory));
        if (call != 8 || forbidden)
            CUDA(cudaFreeHost(pinned));
        if (call != 10 || forbidden)
            CUDA(cudaFreeAsync(of_pool, two));
        if (more)
            CUDA(beside == allocate_pinned ? cudaFreeHost(more) : cudaFree(more));
        if (beside == register_page && !forbidden)
            CUDA(cudaHostUnregister(page));
        CUDA(cudaDeviceSynchronize());
    }
    point("what spoils a capture, in which thread, by its mode");
}

/* NCCL's calls in the branches of a graph, and on several captured streams of a group. */
static void nccl_captured(void) {
    ncclComm_t comm = NULL, other = NULL;
    int *a = new_ints(N), *b = new_ints(N), device = 0;
    NCCL(ncclCommInitAll(&comm, 1, &device));
    NCCL(ncclCommInitAll(&other, 1, &device));
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemsetAsync(a, 5, BYTES, one));
    CUDA(cudaEventRecord(fork_event, one));
    CUDA(cudaStreamWaitEvent(two, fork_event, 0));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, b, N / 2, ncclInt32, ncclSum, comm, one));
    NCCL(ncclAllReduce(a + N / 2, b + N / 2, N / 2, ncclInt32, ncclSum, comm, two));
    NCCL(ncclGroupEnd());
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclSum, other, two));
    CUDA(cudaMemsetAsync(a, 6, BYTES, one));
    CUDA(cudaEventRecord(join_event, two));
    CUDA(cudaStreamWaitEvent(one, join_event, 0));
    cudaGraphExec_t exec = end_capture(one);
    for (int round = 0; round < 3; round++) {
        CUDA(cudaGraphLaunch(exec, one));
    }
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclSum, comm, two));
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaStreamSynchronize(two));
    expect_ints(b, N, 0x05050505, "summed up in a graph");
    expect_ints(a, N, 0x06060606, "set behind it");
    point("a group on two captured streams");

    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclSum, comm, one));
    NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclSum, comm, two));
    NCCL_IS(ncclInvalidUsage, ncclGroupEnd());
    cudaGraphExec_t empty = end_capture(one);
    CUDA(cudaGraphExecDestroy(empty));
    point("a group on a captured stream and one that is not");

    /* The communicator is gone: what a GPU makes of that is an illegal access. */
    NCCL(ncclCommDestroy(comm));
    NCCL(ncclCommDestroy(other));
    CUDA(cudaGraphLaunch(exec, one));
    CUDA_IS(cudaErrorIllegalAddress, cudaStreamSynchronize(one));
    CUDA_IS(cudaErrorIllegalAddress, cudaMemset(a, 0, BYTES)); /* it stays so */
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaDeviceReset());
    CUDA(cudaMalloc((void **)&a, BYTES));
    CUDA(cudaMemset(a, 0, BYTES));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaFree(a));
    point("a graph launched after its communicator is gone");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&fork_event));
    CUDA(cudaEventCreate(&join_event));
    launches_follow_one_another();
    branches();
    reads_the_host();
    allocates();
    refused();
    beside_a_capture();
    nccl_captured();
    CUDA(cudaEventDestroy(fork_event));
    CUDA(cudaEventDestroy(join_event));
    return finish();
}
