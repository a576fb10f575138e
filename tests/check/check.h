// What every program in wrong/ and right/ needs and none of them is about. A program that
// is about one of these steps takes it itself, so that the report names a line of that
// program.
#ifndef CHECK_H
#define CHECK_H

#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Exit code 3 tells check.t that a call failed, 2 that the data was wrong: a report ends
// a program with 1, so neither can be taken for one.
#define MUST(call)                                                                       \
    do {                                                                                 \
        int code_ = (int)(call);                                                         \
        if (code_ != 0) {                                                                \
            fprintf(stderr, "%s:%d: rank %d: %s returned %d (%s)\n", __FILE__, __LINE__, \
                    rank, #call, code_, ncclGetLastError(NULL));                         \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                \
        }                                                                                \
    } while (0)

// Fails unless all n ints in device memory have the value; the caller has synchronised.
#define EXPECT_INTS(device, n, value) expect_ints(device, n, value, __FILE__, __LINE__)

// Fails unless two host values are equal.
#define EXPECT(got, expected) expect((long)(got), (long)(expected), __FILE__, __LINE__)

static int rank, nranks; // of MPI_COMM_WORLD, and the same in comm
static ncclComm_t comm;  // all ranks
static cudaStream_t
    stream; // non-blocking: only a synchronisation orders it with anything

static inline void expect(long got, long expected, const char *file, int line) {
    if (got != expected) {
        fprintf(stderr, "%s:%d: rank %d: got %ld, expected %ld\n", file, line, rank, got,
                expected);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static inline void expect_ints(const int *device, int n, int value, const char *file,
                               int line) {
    int *host = malloc(((size_t)n + 1) * sizeof(int));
    MUST(cudaMemcpy(host, device, (size_t)n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        expect(host[i], value, file, line);
    }
    free(host);
}

// n ints in device memory, all with the same value.
static inline int *device_ints(int n, int value) {
    int *host = malloc((size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) {
        host[i] = value;
    }
    int *device;
    MUST(cudaMalloc((void **)&device, (size_t)n * sizeof(int)));
    MUST(cudaMemcpy(device, host, (size_t)n * sizeof(int), cudaMemcpyHostToDevice));
    MUST(cudaStreamSynchronize(0)); // until the data is there
    free(host);
    return device;
}

// 0 + 1 + … + (nranks - 1): what a sum over all ranks gives when each rank gave its
// number.
static inline int sum_of_ranks(void) {
    return nranks * (nranks - 1) / 2;
}

static inline cudaStream_t new_stream(void) {
    cudaStream_t made;
    MUST(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

// A communicator of the ranks of an MPI communicator, in the same order.
static inline ncclComm_t new_comm(MPI_Comm ranks) {
    int me, size;
    MPI_Comm_rank(ranks, &me);
    MPI_Comm_size(ranks, &size);
    ncclUniqueId id;
    if (me == 0) {
        MUST(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, ranks);
    ncclComm_t made;
    MUST(ncclCommInitRank(&made, size, id, me));
    return made;
}

// Uses a communicator: the ranks' numbers are added up, and the sums are waited for and
// checked.
static inline void use_comm(ncclComm_t used) {
    int *buf = device_ints(4, rank);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, used, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
}

#ifdef NCCL_WIN_COLL_SYMMETRIC
// Memory that is a window of all ranks of comm, with zeros in it.
static inline void *window_memory(size_t bytes, ncclWindow_t *window) {
    void *memory;
    MUST(ncclMemAlloc(&memory, bytes));
    MUST(cudaMemset(memory, 0, bytes));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclCommWindowRegister(comm, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
    return memory;
}

// After all ranks' puts into it.
static inline void end_window(void *memory, ncclWindow_t window) {
    MUST(ncclCommWindowDeregister(comm, window));
    MUST(ncclMemFree(memory));
}
#endif

static inline void know_ranks(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
}

static inline void start_mpi(void) {
    MPI_Init(NULL, NULL);
    know_ranks();
}

static inline void start_device(void) {
    int devices;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaSetDevice(rank % devices));
}

static inline void start_nccl(void) {
    start_device();
    comm = new_comm(MPI_COMM_WORLD);
    stream = new_stream();
}

static inline void start(void) {
    start_mpi();
    start_nccl();
}

// The same for a program of which several threads call MPI.
static inline void start_with_threads(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    know_ranks();
    start_nccl();
}

// A call of a communicator that does not block may go on in the background.
static inline void may_come_later(ncclResult_t result) {
    if (result != ncclInProgress)
        MUST(result);
}

// Asks until a communicator that does not block is ready.
static inline void until_ready(ncclComm_t of) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
        MUST(ncclCommGetAsyncError(of, &state));
    MUST(state);
}

// Both, for a call that has returned `result`.
static inline void settle(ncclComm_t of, ncclResult_t result) {
    may_come_later(result);
    until_ready(of);
}

// Like start, with a communicator that does not block.
static inline void start_polled(void) {
    start_mpi();
    start_device();
    stream = new_stream();
    ncclUniqueId id;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    may_come_later(ncclCommInitRankConfig(&comm, nranks, id, rank, &config));
    until_ready(comm);
}

static inline void finish_polled(void) {
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommAbort(comm));
    MPI_Finalize();
}

#if NCCL_VERSION_CODE >= 22900
// A communicator of all ranks but the last, and the id by which the last one joins it;
// NULL on that one.
static inline ncclComm_t all_but_last(ncclUniqueId *id) {
    int newest = rank == nranks - 1;
    ncclComm_t old = NULL;
    MUST(ncclCommSplit(comm, newest ? NCCL_SPLIT_NOCOLOR : 0, rank, &old, NULL));
    if (rank == 0)
        MUST(ncclCommGetUniqueId(old, id));
    MPI_Bcast(id, sizeof *id, MPI_BYTE, 0, MPI_COMM_WORLD);
    return old;
}

// It has grown to all ranks, and does not block. The root of the id is rank 0.
static inline ncclComm_t grow_polled(ncclComm_t old, const ncclUniqueId *id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t grown = NULL;
    may_come_later(ncclCommGrow(old, nranks, !old || rank == 0 ? id : NULL,
                                old ? -1 : rank, &grown, &config));
    if (old)
        until_ready(old);
    until_ready(grown);
    return grown;
}
#endif

static inline void finish(void) {
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm)); // @finish
    MPI_Finalize();
}

#endif
