/*
 * What the host does meanwhile: host functions, which call MPI or wait for the program;
 * and a program that waits by its own means, or in MPI, while something is queued. CUDA
 * Runtime API, "Execution Control", cudaLaunchHostFunc.
 */
#define TAP_THREADS
#include "ints.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* Of the library, for whoever stands in front of it: the host waits elsewhere from now
 * on, or no longer. */
void standin_host_blocks(int begins);

enum { N = 5000 };
#define BYTES (N * sizeof(int))

static ncclComm_t comm;
static cudaStream_t one, two;
static int rank, nranks;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void add_up_ranks(void *sum) {
    MPI_Allreduce(&rank, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void calls_mpi(void) {
    int *a = new_ints(N), sums[3] = {-1, -1, -1};
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 3; i++) {
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        CUDA(cudaLaunchHostFunc(one, add_up_ranks, &sums[i]));
    }
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, one));
    CUDA(cudaStreamSynchronize(one));
    for (int i = 0; i < 3; i++) {
        expect(sums[i] == nranks * (nranks - 1) / 2, "sum %d is %d", i, sums[i]);
    }
    expect_ints(a, N, nranks, "behind the functions");
    CUDA(cudaFree(a));
    point("a host function calls MPI");
}

static cudaError_t codes[6];
static ncclResult_t result;
static int *theirs;

static void call_cuda(void *unused) {
    (void)unused;
    int device;
    void *more;
    codes[0] = cudaStreamSynchronize(one);
    codes[1] = cudaMalloc(&more, 4);
    codes[2] = cudaMemcpyAsync(theirs, theirs + 4, 16, cudaMemcpyDefault, two);
    codes[3] = cudaGetDevice(&device);
    codes[4] = cudaDeviceSynchronize();
    codes[5] = cudaGetLastError();
    result = ncclAllReduce(theirs, theirs, 1, ncclInt32, ncclSum, comm, two);
}

static void calls_cuda(void) {
    theirs = new_ints(N);
    set_ints(theirs, N, 1);
    CUDA(cudaLaunchHostFunc(one, call_cuda, NULL));
    NCCL(ncclAllReduce(theirs, theirs, N, ncclInt32, ncclSum, comm, one));
    CUDA(cudaStreamSynchronize(one));
    for (int i = 0; i < 6; i++) {
        expect(codes[i] == cudaErrorNotPermitted, "call %d returned %s", i,
               cudaGetErrorName(codes[i]));
    }
    expect(result == ncclInvalidUsage, "ncclAllReduce returned %s", nccl_name(result));
    CUDA(cudaGetLastError()); /* it was another thread's */
    expect_ints(theirs, N, nranks, "behind the function");
    CUDA(cudaFree(theirs));
    point("a host function that calls CUDA or NCCL is not permitted to");
}

static sem_t ready;

static void wait_for_it(void *unused) {
    (void)unused;
    sem_wait(&ready);
}

static void ring_it(void *unused) {
    (void)unused;
    sem_post(&ready);
}

/* The function waits for the program, which waits for another stream meanwhile. */
static void one_stream_is_held(void) {
    int *a = new_ints(N), *b = new_ints(N);
    set_ints(b, N, 1);
    CUDA(cudaMemset(a, 0, BYTES));
    CUDA(cudaDeviceSynchronize());
    sem_init(&ready, 0, 0);
    CUDA(cudaLaunchHostFunc(one, wait_for_it, NULL));
    CUDA(cudaMemsetAsync(a, 1, BYTES, one));
    NCCL(ncclAllReduce(b, b, N, ncclInt32, ncclSum, comm, two));
    CUDA(cudaStreamSynchronize(two));
    CUDA_IS(cudaErrorNotReady, cudaStreamQuery(one));
    sem_post(&ready);
    CUDA(cudaStreamSynchronize(one));
    expect_ints(a, N, 0x01010101, "behind the function");
    expect_ints(b, N, nranks, "on the other stream");
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("while a host function holds one stream, the others go on");
}

static atomic_int inside, most;

static void count_inside(void *unused) {
    (void)unused;
    int here = atomic_fetch_add(&inside, 1) + 1;
    if (here > atomic_load(&most))
        atomic_store(&most, here);
    usleep(20000);
    atomic_fetch_sub(&inside, 1);
}

/* "Host functions without a mandated order … may be serialized": they are on an H100. */
static void one_function_at_a_time(void) {
    atomic_store(&most, 0);
    for (int i = 0; i < 3; i++) {
        CUDA(cudaLaunchHostFunc(one, count_inside, NULL));
        CUDA(cudaLaunchHostFunc(two, count_inside, NULL));
    }
    CUDA(cudaDeviceSynchronize());
    expect(atomic_load(&most) == 1, "%d functions at the same time", atomic_load(&most));
    point("host functions on two streams run one after another");
}

static void note_time(void *when) {
    *(double *)when = seconds();
}

static void take_long(void *unused) {
    (void)unused;
    usleep(100000);
}

/* Copies between hosts, and sets of memory that the host sees, return when they are
 * done. CUDA Runtime API, "API synchronization behavior". */
static void synchronous(void) {
    int *from, *to, *managed, plain[4] = {1, 2, 3, 4}, seen[4] = {0};
    CUDA(cudaMallocHost((void **)&from, BYTES));
    CUDA(cudaMallocHost((void **)&to, BYTES));
    CUDA(cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal));
    memset(from, 1, BYTES);
    memset(to, 0, BYTES);
    memset(managed, 0, BYTES);
    CUDA(cudaLaunchHostFunc(one, take_long, NULL));
    CUDA(cudaMemcpyAsync(to, from, BYTES, cudaMemcpyHostToHost, one));
    expect_all(to, N, 0x01010101, "pinned to pinned");
    CUDA(cudaLaunchHostFunc(one, take_long, NULL));
    CUDA(cudaMemcpyAsync(to, plain, sizeof plain, cudaMemcpyHostToHost, one));
    expect(to[3] == 4, "pageable to pinned: %d", to[3]);
    CUDA(cudaMemcpyAsync(seen, plain, sizeof plain, cudaMemcpyHostToHost, one));
    expect(seen[3] == 4, "pageable to pageable: %d", seen[3]);
    cudaStream_t blocking;
    CUDA(cudaStreamCreate(&blocking));
    CUDA(cudaLaunchHostFunc(blocking, take_long, NULL));
    CUDA(cudaMemset(managed, 2, BYTES));
    expect_all(managed, N, 0x02020202, "managed memory");
    CUDA(cudaLaunchHostFunc(blocking, take_long, NULL));
    CUDA(cudaMemset(to, 3, BYTES));
    expect_all(to, N, 0x03030303, "pinned memory");
    CUDA(cudaStreamDestroy(blocking));
    CUDA(cudaFreeHost(from));
    CUDA(cudaFreeHost(to));
    CUDA(cudaFree(managed));
    point("copies from host to host and sets of its memory are synchronous");
}

/* copy on one stream, event, wait on another, function there: it sees the copy. */
static void read_first(void *first) {
    ((int *)first)[1] = ((int *)first)[0];
}

static void behind_an_event(void) {
    int *a = new_ints(N), *host;
    cudaEvent_t event;
    CUDA(cudaMallocHost((void **)&host, BYTES));
    CUDA(cudaEventCreate(&event));
    memset(host, 0, BYTES);
    set_ints(a, N, 42);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaLaunchHostFunc(two, take_long, NULL));
    CUDA(cudaMemcpyAsync(host, a, sizeof(int), cudaMemcpyDeviceToHost, two));
    CUDA(cudaEventRecord(event, two));
    CUDA(cudaStreamWaitEvent(one, event, 0));
    CUDA(cudaLaunchHostFunc(one, read_first, host));
    CUDA(cudaStreamSynchronize(one));
    expect(host[1] == 42, "the function saw %d", host[1]);
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFreeHost(host));
    CUDA(cudaFree(a));
    point("a host function behind copy, event and wait");
}

/* Nobody calls CUDA: the program waits for a flag, a semaphore, or in MPI. */
static void waits_elsewhere(void) {
    int *a = new_ints(N);
    double when[1000];
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    usleep(1500000); /* so long that nobody looks any more */
    for (int round = 0; round < 3; round++) {
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        CUDA(cudaLaunchHostFunc(one, ring_it, NULL));
        double begun = seconds();
        sem_wait(&ready);
        expect(seconds() - begun < 5, "after %g s", seconds() - begun);
    }
    point("the program waits for what a host function signals");

    /* Each rank tells the next one by MPI when its stream has got that far. */
    int token = 0;
    for (int round = 0; round < 2; round++) {
        NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
        if (rank == 0) {
            CUDA(cudaStreamSynchronize(one));
            for (int r = 1; r < nranks; r++) {
                MPI_Send(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
            }
        } else {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    CUDA(cudaStreamSynchronize(one));
    point("the program waits in MPI for a rank that waits for its operation");

    /* One who says that it is about to wait there need not wait for the other's patience
     * of 50 ms: first ten rounds without a word, then forty with it. */
    double took[2];
    for (int says = 0; says < 2; says++) {
        double before = seconds();
        for (int round = 0; round < (says ? 40 : 10); round++) {
            NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclMax, comm, one));
            if (rank == 0) {
                CUDA(cudaStreamSynchronize(one));
            }
            if (says) {
                standin_host_blocks(1);
            }
            MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (says) {
                standin_host_blocks(0);
            }
        }
        took[says] = (seconds() - before) / (says ? 40 : 10);
    }
    expect(nranks == 1 || took[1] < 0.75 * took[0],
           "a round took %g s, and %g s without a word", took[1], took[0]);
    CUDA(cudaStreamSynchronize(one));
    point("the program says that it waits in MPI");

    /* Work done by itself is not late by more than the patience of who does it. */
    for (int i = 0; i < 1000; i++) {
        CUDA(cudaLaunchHostFunc(one, note_time, &when[i]));
    }
    double begun = seconds();
    sem_init(&ready, 0, 0);
    CUDA(cudaLaunchHostFunc(one, ring_it, NULL));
    sem_wait(&ready);
    expect(seconds() - begun < 30, "a thousand functions took %g s", seconds() - begun);
    for (int i = 1; i < 1000; i++) {
        expect(when[i] >= when[i - 1], "function %d came before %d", i, i - 1);
    }
    CUDA(cudaFree(a));
    point("a thousand host functions, in order, without a wait in CUDA");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    calls_mpi();
    calls_cuda();
    one_stream_is_held();
    one_function_at_a_time();
    synchronous();
    behind_an_event();
    waits_elsewhere();
    CUDA(cudaStreamDestroy(one));
    CUDA(cudaStreamDestroy(two));
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
