/*
 * Which operation comes before which: groups on several streams, operations of one
 * communicator on several streams, sends to oneself. NCCL User Guide, "Group Calls",
 * "CUDA Stream Semantics".
 */
#define TAP_THREADS
#include "ints.h"
#include <unistd.h>

enum { N = 3000 };
#define BYTES (N * sizeof(int))

static ncclComm_t comm;
static cudaStream_t one, two;
static int rank, nranks;

static void take_long(void *unused) {
    (void)unused;
    usleep(60000);
}

/* What comes before the group on either stream comes before all of the group; what comes
 * after it on either stream comes after all of it. */
static void on_two_streams(void) {
    int *a = new_ints(N), *b = new_ints(N), *host;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    for (int order = 0; order < 2; order++) {
        cudaStream_t early = order ? one : two, late = order ? two : one;
        set_ints(a, N, 0);
        set_ints(b, N, 0);
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaLaunchHostFunc(early, take_long, NULL));
        CUDA(cudaMemsetAsync(a, 1, BYTES, early));
        CUDA(cudaMemsetAsync(b, 1, BYTES, late));
        NCCL(ncclGroupStart());
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, late));
        NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclSum, comm, early));
        NCCL(ncclGroupEnd());
        CUDA(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, early));
        CUDA(cudaStreamSynchronize(early));
        expect_all(host, N, 0x01010101 * nranks, "first of the group");
        CUDA(cudaMemcpyAsync(host, b, BYTES, cudaMemcpyDeviceToHost, late));
        CUDA(cudaStreamSynchronize(late));
        expect_all(host, N, 0x01010101 * nranks, "second of the group");
    }
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFreeHost(host));
    point("a group on two streams is as if on each of them");
}

/* The default stream keeps step with blocking streams, and so does what a group holds. */
static void with_the_default_stream(void) {
    cudaStream_t blocking;
    int *a = new_ints(N), *b = new_ints(N), *host = malloc(BYTES);
    CUDA(cudaStreamCreate(&blocking));
    CUDA(cudaMemset(b, 0, BYTES));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaLaunchHostFunc(blocking, take_long, NULL));
    CUDA(cudaMemsetAsync(a, 2, BYTES, blocking));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclMax, comm, 0));
    NCCL(ncclGroupEnd());
    CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, blocking));
    CUDA(cudaStreamSynchronize(blocking));
    CUDA(cudaMemcpy(host, b, BYTES, cudaMemcpyDeviceToHost));
    expect_all(host, N, 0x02020202, "through the default stream");
    CUDA(cudaStreamDestroy(blocking));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    free(host);
    point("a group on the default stream and another one");
}

/* The second operation of a communicator begins when the first is over. */
static void one_after_the_other(void) {
    int *a = new_ints(N), *b = new_ints(N);
    set_ints(a, N, 1);
    set_ints(b, N, 1);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaLaunchHostFunc(one, take_long, NULL));
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, one));
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclSum, comm, two));
    CUDA(cudaStreamSynchronize(two));
    CUDA(cudaStreamQuery(one));
    expect_ints(a, N, nranks, "first");
    expect_ints(b, N, nranks, "second");
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("operations of one communicator follow one another on two streams");

    /* So a send and a receive that need each other must be in a group: here both ranks
     * send first, and stay there. */
    ncclComm_t pair = NULL;
    NCCL(ncclCommSplit(comm, rank / 2, rank, &pair, NULL));
    int size, me;
    NCCL(ncclCommCount(pair, &size));
    NCCL(ncclCommUserRank(pair, &me));
    int *send = new_ints(N), *recv = new_ints(N);
    set_ints(send, N, 1);
    if (size == 2) { /* the first ones connect the ranks: they would wait on the host */
        NCCL(ncclGroupStart());
        NCCL(ncclSend(send, N, ncclInt32, 1 - me, pair, one));
        NCCL(ncclRecv(recv, N, ncclInt32, 1 - me, pair, one));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(one));
    }
    set_ints(recv, N, 2);
    CUDA(cudaDeviceSynchronize());
    if (size == 2) {
        NCCL(ncclSend(send, N, ncclInt32, 1 - me, pair, one));
        NCCL(ncclRecv(recv, N, ncclInt32, 1 - me, pair, two));
        cudaError_t state = cudaErrorNotReady;
        for (int i = 0; i < 300 && state == cudaErrorNotReady; i++) {
            usleep(1000);
            state = cudaStreamQuery(two);
        }
        expect(state == cudaErrorNotReady, "the receive is over: %s",
               cudaGetErrorName(state));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    NCCL(ncclCommAbort(pair));
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaStreamSynchronize(two));
    if (size == 2) {
        expect_ints(recv, N, 2, "never received");
    }
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point(
        "two ranks that both send first, on two streams and without a group, stay there");
}

static void in_place_to_oneself(void) {
    int *a = new_ints(70001);
    static const size_t counts[] = {0, 5, 70001};
    for (int i = 0; i < 3; i++) {
        set_message(a, 70001, rank, i);
        NCCL(ncclGroupStart());
        NCCL(ncclSend(a, counts[i], ncclInt32, rank, comm, one));
        NCCL(ncclRecv(a, counts[i], ncclInt32, rank, comm, one));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(one));
        expect_message(a, 70001, rank, i, "sent to oneself in place");
    }
    point("to oneself in place");

    NCCL_IS(ncclInvalidUsage, ncclSend(a, 5, ncclInt32, rank, comm, one));
    NCCL_IS(ncclInvalidUsage, ncclRecv(a, 5, ncclInt32, rank, comm, one));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(a, 5, ncclInt32, rank, comm, one));
    NCCL_IS(ncclInvalidUsage, ncclGroupEnd());
    set_ints(a, N, 1);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, one));
    CUDA(cudaStreamSynchronize(one));
    expect_ints(a, N, nranks, "afterwards");
    CUDA(cudaFree(a));
    point("to oneself, and nothing to receive it");
}

/* A collective of nothing is none: it waits for nobody. */
static void of_nothing(void) {
    int *a = new_ints(10);
    if (rank == 0) {
        NCCL(ncclAllReduce(a, a, 0, ncclInt32, ncclSum, comm, one));
        CUDA(cudaStreamSynchronize(one));
    }
    set_ints(a, 10, 1);
    NCCL(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, comm, one));
    CUDA(cudaStreamSynchronize(one));
    expect_ints(a, 10, nranks, "afterwards");
    CUDA(cudaFree(a));
    point("a collective of no elements");
}

/* Ranks that do not agree stay there, and nothing is written. */
static void disagreement(void) {
    static const size_t counts[] = {100, 70001};
    int *a = new_ints(80000), *b = new_ints(80000);
    for (int i = 0; i < 4 && nranks > 1; i++) {
        ncclComm_t c = NULL;
        size_t mine = counts[i % 2] + (rank == nranks - 1);
        NCCL(ncclCommSplit(comm, 0, rank, &c, NULL));
        set_ints(a, 80000, 1);
        set_ints(b, 80000, 7);
        if (i < 2) {
            NCCL(ncclAllReduce(a, b, mine, ncclInt32, ncclSum, c, one));
        } else {
            NCCL(ncclGroupStart());
            NCCL(ncclSend(a, mine, ncclInt32, (rank + 1) % nranks, c, one));
            NCCL(ncclRecv(b, counts[i % 2], ncclInt32, (rank + nranks - 1) % nranks, c,
                          one));
            NCCL(ncclGroupEnd());
        }
        for (int k = 0; k < 100; k++) {
            usleep(1000);
            cudaStreamQuery(one);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        bool wronged = i < 2 || rank == 0 || rank == nranks - 1;
        expect(!wronged || cudaStreamQuery(one) == cudaErrorNotReady, "%d ended", i);
        MPI_Barrier(MPI_COMM_WORLD);
        NCCL(ncclCommAbort(c));
        CUDA(cudaStreamSynchronize(one));
        if (i < 2 || rank == 0) {
            expect_ints(b, 80000, 7, "without agreement");
        }
    }
    cudaGetLastError();
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("ranks that do not agree on the count wait, until they abort");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    on_two_streams();
    with_the_default_stream();
    one_after_the_other();
    in_place_to_oneself();
    of_nothing();
    disagreement();
    CUDA(cudaStreamDestroy(one));
    CUDA(cudaStreamDestroy(two));
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
