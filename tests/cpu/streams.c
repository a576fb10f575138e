/*
 * Streams and events around NCCL calls: what is queued happens in order, nothing needs to
 * have happened before a wait, and the default stream keeps its rules. CUDA Runtime API,
 * Stream synchronization behavior and API synchronization behavior.
 */
#include "ints.h"
#include <math.h>
#include <unistd.h>

static ncclComm_t comm;
static int rank, nranks;

enum { N = 5000 };
#define BYTES (N * sizeof(int))

static cudaStream_t new_stream(unsigned int flags) {
    cudaStream_t stream = NULL;
    CUDA(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

/* One queue of copies, sets and collectives with a single wait at its end. */
static void order(void) {
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    int *a = new_ints(N), *b = new_ints(N), *first, *second;
    CUDA(cudaMallocHost((void **)&first, BYTES));
    CUDA(cudaMallocHost((void **)&second, BYTES));
    for (int i = 0; i < N; i++) {
        first[i] = rank + 1;
    }
    CUDA(cudaMemcpyAsync(a, first, BYTES, cudaMemcpyHostToDevice, stream));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, stream));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(second, a, BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaMemsetAsync(a, 0, BYTES, stream));
    NCCL(ncclAllReduce(b, a, N, ncclInt32, ncclMax, comm, stream));
    CUDA(cudaMemcpyAsync(first, a, BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    int sum = nranks * (nranks + 1) / 2;
    expect_all(first, N, sum, "first sum");
    expect_all(second, N, sum * nranks, "second sum");
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFreeHost(first));
    CUDA(cudaFreeHost(second));
    CUDA(cudaStreamDestroy(stream));
    point("operations of one stream happen in order");
}

static void events_between_streams(void) {
    cudaStream_t one = new_stream(cudaStreamNonBlocking);
    cudaStream_t two = new_stream(cudaStreamNonBlocking);
    cudaEvent_t ready, back;
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(cudaEventCreate(&back));
    int *a = new_ints(N), *host;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    for (int round = 0; round < 5; round++) {
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, one));
        CUDA(cudaEventRecord(ready, one));
        CUDA(cudaStreamWaitEvent(two, ready, 0));
        CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, two));
        CUDA(cudaMemsetAsync(a, 0, BYTES, two));
        CUDA(cudaEventRecord(back, two));
        CUDA(cudaStreamWaitEvent(one, back, 0));
        CUDA(cudaEventSynchronize(back));
        CUDA(cudaEventQuery(back));
        CUDA(cudaEventQuery(ready));
        expect_all(host, N, round == 0 ? nranks : 0, "copied on the second stream");
    }
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaStreamSynchronize(two));
    CUDA(cudaEventDestroy(ready));
    CUDA(cudaEventDestroy(back));
    CUDA(cudaStreamDestroy(one));
    CUDA(cudaStreamDestroy(two));
    CUDA(cudaFree(a));
    CUDA(cudaFreeHost(host));
    point("an event orders two streams, again and again");
}

/* An event that nothing was recorded in holds nothing up; one recorded twice means the
 * later. */
static void event_states(void) {
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event, other;
    float ms = -1;
    CUDA(cudaEventCreate(&event));
    CUDA(cudaEventCreate(&other));
    CUDA(cudaEventQuery(event));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaStreamWaitEvent(stream, event, 0));
    CUDA(cudaStreamSynchronize(stream));
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event, other));
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    point("an event that was never recorded");

    int *a = new_ints(N);
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaEventRecord(event, stream));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaEventRecord(other, stream));
    CUDA(cudaEventRecord(event, stream));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaEventQuery(other)); /* came before the second record of `event` */
    CUDA(cudaStreamQuery(stream));
    expect_ints(a, N, nranks, "all-reduce before an event");
    CUDA(cudaEventElapsedTime(&ms, other, event));
    expect(ms >= 0 && ms < 60000, "%g ms between two records", ms);
    point("an event recorded twice stands for the later");

    CUDA(cudaEventRecord(event, stream));
    CUDA(cudaEventSynchronize(event));
    usleep(30000);
    CUDA(cudaEventRecord(other, stream));
    CUDA(cudaEventSynchronize(other));
    CUDA(cudaEventElapsedTime(&ms, event, other));
    expect(ms >= 25 && ms < 60000, "%g ms, after 30 ms of sleep", ms);
    cudaEvent_t untimed;
    CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CUDA(cudaEventRecord(untimed, stream));
    CUDA(cudaEventSynchronize(untimed));
    CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event, untimed));
    cudaGetLastError();
    CUDA(cudaEventDestroy(untimed));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaEventDestroy(other));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(a));
    point("elapsed time in milliseconds");
}

/* Rank 0 receives what the last rank sends only after rank 0 has looked at its stream. */
static void not_ready(void) {
    if (nranks > 1) {
        int *a = new_ints(N), go = 1;
        cudaStream_t stream = new_stream(cudaStreamDefault);
        /* The first message between two ranks may wait for both: get that over with. */
        if (rank == 0) {
            NCCL(ncclRecv(a, N, ncclInt32, nranks - 1, comm, stream));
        } else if (rank == nranks - 1) {
            CUDA(cudaMemset(a, 0, BYTES));
            NCCL(ncclSend(a, N, ncclInt32, 0, comm, stream));
        }
        CUDA(cudaStreamSynchronize(stream));
        if (rank == 0) {
            cudaEvent_t before, after;
            float ms;
            set_ints(a, N, -1);
            CUDA(cudaEventCreate(&before));
            CUDA(cudaEventCreate(&after));
            CUDA(cudaEventRecord(before, stream));
            NCCL(ncclRecv(a, N, ncclInt32, nranks - 1, comm, stream));
            CUDA(cudaEventRecord(after, stream));
            CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
            CUDA_IS(cudaErrorNotReady, cudaEventQuery(after));
            CUDA_IS(cudaErrorNotReady, cudaEventElapsedTime(&ms, before, after));
            CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
            /* The default stream comes after the blocking stream. */
            CUDA_IS(cudaErrorNotReady, cudaStreamQuery(0));
            CUDA(cudaMemsetAsync(a, 0, sizeof(int), 0));
            CUDA_IS(cudaErrorNotReady, cudaStreamQuery(0));
            cudaGetLastError();
            cudaStreamQuery(stream);
            CUDA(cudaPeekAtLastError()); /* "not ready" is an answer, no error */
            MPI_Send(&go, 1, MPI_INT, nranks - 1, 0, MPI_COMM_WORLD);
            CUDA(cudaEventSynchronize(after));
            CUDA(cudaStreamQuery(stream));
            CUDA(cudaEventQuery(after));
            CUDA(cudaEventElapsedTime(&ms, before, after));
            CUDA(cudaStreamSynchronize(0));
            expect_ints(a, 1, 0, "set on the default stream");
            expect_ints(a + 1, N - 1, 77, "received");
            CUDA(cudaEventDestroy(before));
            CUDA(cudaEventDestroy(after));
        } else if (rank == nranks - 1) {
            set_ints(a, N, 77);
            MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            NCCL(ncclSend(a, N, ncclInt32, 0, comm, stream));
        }
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaStreamDestroy(stream));
        CUDA(cudaFree(a));
    }
    point("queries say \"not ready\" until the other rank has come, and keep no error");
}

/* Stream 0 waits for blocking streams and they for it. */
static void default_stream(void) {
    cudaStream_t one = new_stream(cudaStreamDefault), two;
    CUDA(cudaStreamCreate(&two));
    int *a = new_ints(N), *host = malloc(BYTES);
    for (int round = 0; round < 3; round++) {
        CUDA(cudaMemset(a, 0, BYTES));
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        CUDA(cudaMemsetAsync(a, 1, BYTES, 0));
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, two));
        CUDA(cudaMemcpyAsync(a, a + N / 2, BYTES / 2, cudaMemcpyDeviceToDevice, 0));
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        CUDA(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost)); /* waits by itself */
        expect_all(host, N, 0x01010101, "through stream 0");
    }
    point("the default stream and the blocking streams keep step, without a wait");

    int *pinned;
    CUDA(cudaMallocHost((void **)&pinned, BYTES));
    set_ints(a, N, 1);
    CUDA(cudaStreamSynchronize(0));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, one));
    CUDA(cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, one));
    CUDA(cudaStreamSynchronize(0));
    expect_all(pinned, N, nranks, "after a wait for stream 0");
    CUDA(cudaFreeHost(pinned));
    point("who waits for stream 0 waits for the blocking streams");

    set_ints(a, N, rank);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
    expect_all(host, N, nranks * (nranks - 1) / 2, "collective on stream 0");
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, cudaStreamLegacy));
    CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, one));
    CUDA(cudaStreamSynchronize(one));
    expect_all(host, N, nranks * (nranks - 1) / 2, "collective on cudaStreamLegacy");
    CUDA(cudaMemsetAsync(a, 0, BYTES, cudaStreamPerThread));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    expect_ints(a, N, 0, "collective on cudaStreamPerThread");
    point("collectives on stream 0, cudaStreamLegacy and cudaStreamPerThread");

    cudaStream_t apart = new_stream(cudaStreamNonBlocking);
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, apart));
    CUDA(cudaStreamSynchronize(apart)); /* stream 0 would not wait for it */
    CUDA(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
    expect_all(host, N, nranks, "non-blocking stream");
    set_ints(a, N, 2);
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, apart));
    CUDA(cudaDeviceSynchronize()); /* all streams, this one too */
    CUDA(cudaStreamQuery(apart));
    CUDA(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
    expect_all(host, N, 2 * nranks, "after cudaDeviceSynchronize");
    point("a non-blocking stream, waited for by itself and with the device");

    /* A destroyed stream still does what was queued. */
    set_ints(a, N, 3);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, two));
    CUDA(cudaStreamDestroy(two));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
    expect_all(host, N, 3 * nranks, "on a destroyed stream");
    CUDA(cudaStreamDestroy(one));
    CUDA(cudaStreamDestroy(apart));
    CUDA(cudaFree(a));
    free(host);
    point("a destroyed stream finishes its work");
}

/* The host may do as it likes with pageable memory after cudaMemcpy has returned. */
static void copies_and_the_host(void) {
    int *a = new_ints(N), host[100];
    for (int i = 0; i < 100; i++) {
        host[i] = 5;
    }
    CUDA(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    memset(host, 0, sizeof host);
    NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
    expect_all(host, 100, 5 * nranks, "copied before it was overwritten");
    CUDA(cudaFree(a));
    point("cudaMemcpy has read the host's memory when it returns");
}

static void pinned_and_managed(void) {
    cudaStream_t stream = new_stream(cudaStreamDefault);
    int *managed, *pinned;
    CUDA(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    CUDA(cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocDefault));
    for (int i = 0; i < N; i++) {
        managed[i] = rank;
    }
    NCCL(ncclAllReduce(managed, managed, N, ncclInt32, ncclMax, comm, stream));
    CUDA(cudaMemcpyAsync(pinned, managed, BYTES, cudaMemcpyDefault, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_all(managed, N, nranks - 1, "managed memory, read by the host");
    expect_all(pinned, N, nranks - 1, "pinned memory");
    CUDA(cudaFree(managed));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaStreamDestroy(stream));
    point("collectives on managed memory, copies to pinned memory");
}

static void allocated_on_a_stream(void) {
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    int *host;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    for (int round = 0; round < 5; round++) {
        int *a, *b;
        CUDA(cudaMallocAsync((void **)&a, BYTES, stream));
        CUDA(cudaMallocAsync((void **)&b, BYTES, stream));
        CUDA(cudaMemsetAsync(a, round, BYTES, stream));
        NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclMax, comm, stream));
        CUDA(cudaFreeAsync(a, stream));
        CUDA(cudaMemcpyAsync(host, b, BYTES, cudaMemcpyDeviceToHost, stream));
        CUDA(cudaFreeAsync(b, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect_all(host, N, round * 0x01010101, "memory of the stream");
    }
    int *c;
    CUDA(cudaMallocAsync((void **)&c, BYTES, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaFree(c));
    CUDA(cudaFreeHost(host));
    CUDA(cudaStreamDestroy(stream));
    point("memory that a stream allocates and frees");
}

static int calls[4], ncalls;

static void note_call(void *which) {
    if (ncalls < 4) {
        calls[ncalls] = *(int *)which;
    }
    ncalls++;
}

/* What came before on the stream has happened, so the function may read it. */
static void add_up(void *pinned) {
    int *numbers = pinned;
    for (int i = 1; i < N; i++) {
        numbers[0] += numbers[i];
    }
}

static void host_functions(void) {
    cudaStream_t stream = new_stream(cudaStreamDefault);
    int *a = new_ints(N), one = 1, two = 2, *host;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    set_ints(a, N, 1);
    CUDA(cudaLaunchHostFunc(stream, note_call, &one));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaLaunchHostFunc(stream, note_call, &two));
    CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(ncalls == 2 && calls[0] == 1 && calls[1] == 2, "%d calls, first %d, second %d",
           ncalls, calls[0], calls[1]);
    expect_all(host, N, nranks, "behind a host function");
    CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaLaunchHostFunc(stream, add_up, host));
    CUDA(cudaMemcpyAsync(a, host, sizeof(int), cudaMemcpyHostToDevice, stream));
    NCCL(ncclAllReduce(a, a, 1, ncclInt32, ncclMax, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 1, N * nranks, "added up by a host function");
    CUDA(cudaFree(a));
    CUDA(cudaFreeHost(host));
    CUDA(cudaStreamDestroy(stream));
    point("host functions are called once, in order");
}

static void graphs(void) {
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaStream_t side = new_stream(cudaStreamNonBlocking);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    int *a = new_ints(N), *b = new_ints(N);
    set_ints(a, N, 1);
    CUDA(cudaMemset(b, 0, BYTES));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusNone, "status %d before", (int)status);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusActive, "status %d within", (int)status);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    expect(graph != NULL, "no graph");
    CUDA(cudaStreamIsCapturing(stream, &status));
    expect(status == cudaStreamCaptureStatusNone, "status %d after", (int)status);
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, N, 1, "captured, not done");
    expect_ints(b, N, 0, "captured, not done");
    point("a capture does nothing yet");

    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    int expected = 1;
    for (int round = 0; round < 3; round++) {
        CUDA(cudaGraphLaunch(exec, stream));
        expected *= nranks;
    }
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, N, expected, "after three launches");
    expect_ints(b, N, expected, "copied in the graph");
    CUDA(cudaMemsetAsync(a, 0, BYTES, side));
    CUDA(cudaStreamSynchronize(side));
    CUDA(cudaGraphLaunch(exec, side));
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclMax, comm, side));
    CUDA(cudaStreamSynchronize(side));
    expect_ints(b, N, 0, "launched on another stream, in order with it");
    CUDA(cudaGraphExecDestroy(exec));
    point("a graph is launched several times, and in order with its stream");

    /* A second stream is captured by waiting for an event of the first, and joins again.
     */
    cudaEvent_t fork, join;
    CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemsetAsync(a, 1, BYTES, stream));
    CUDA(cudaEventRecord(fork, stream));
    CUDA(cudaStreamWaitEvent(side, fork, 0));
    CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, side));
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclMax, comm, side));
    CUDA(cudaEventRecord(join, side));
    CUDA(cudaStreamWaitEvent(stream, join, 0));
    CUDA(cudaMemsetAsync(a, 2, BYTES, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, N, 0x02020202, "after the join");
    expect_ints(b, N, 0x01010101, "between fork and join");
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(fork));
    CUDA(cudaEventDestroy(join));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(side));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("a graph of two streams");
}

/* Far more operations than any queue would keep at hand, and one wait. */
static void long_queue(void) {
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    int *a = new_ints(10), *b = new_ints(10);
    enum { OPERATIONS = 500 };
    CUDA(cudaMemsetAsync(a, OPERATIONS % 100, 10 * sizeof(int), stream));
    for (int i = 0; i < OPERATIONS; i++) {
        NCCL(ncclAllReduce(a, b, 10, ncclInt32, ncclMax, comm, stream));
        CUDA(cudaMemsetAsync(a, i % 100, 10 * sizeof(int), stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(b, 10, (OPERATIONS - 2) % 100 * 0x01010101, "last all-reduce");
    expect_ints(a, 10, (OPERATIONS - 1) % 100 * 0x01010101, "last set");
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaStreamDestroy(stream));
    point("a thousand operations and one wait");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    order();
    events_between_streams();
    event_states();
    not_ready();
    default_stream();
    copies_and_the_host();
    pinned_and_managed();
    allocated_on_a_stream();
    host_functions();
    graphs();
    long_queue();
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
