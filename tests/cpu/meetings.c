/*
 * How ranks become a communicator: in a different order on every rank, several ranks in
 * each process, without blocking, one of them absent, thousands one after the other. NCCL
 * User Guide, "Creating a Communicator", "Fault Tolerance".
 */
#define TAP_THREADS
#include "ints.h"
#include <sys/resource.h>
#include <unistd.h>

enum { N = 5000 };

static ncclComm_t comm;
static cudaStream_t stream;
static int rank, nranks;

static ncclUniqueId shared_id(int maker) {
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (rank == maker) {
        NCCL(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, maker, MPI_COMM_WORLD);
    return id;
}

static ncclResult_t state_in(ncclComm_t c, int ms) {
    ncclResult_t state = ncclInProgress;
    for (int i = 0; i < ms && state == ncclInProgress; i++) {
        NCCL(ncclCommGetAsyncError(c, &state));
        if (state == ncclInProgress) {
            usleep(1000);
        }
    }
    return state;
}

/* `returns`: what its calls return, ncclInProgress if it does not block. */
static void expect_works(ncclComm_t c, int n, ncclResult_t returns, const char *what) {
    int *a = new_ints(N);
    set_ints(a, N, 1);
    CUDA(cudaDeviceSynchronize());
    NCCL_IS(returns, ncclAllReduce(a, a, N, ncclInt32, ncclSum, c, stream));
    expect(state_in(c, 5000) == ncclSuccess, "%s: not issued", what);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 5, ncclInt32, ncclSum, c, stream));
    NCCL_IS(returns, ncclGroupEnd());
    expect(state_in(c, 5000) == ncclSuccess, "%s: a group is not issued", what);
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 5, n * n, what);
    expect_ints(a + 5, N - 5, n, what);
    CUDA(cudaFree(a));
}

/* Two communicators made in one group, on odd ranks the other one first. */
static void other_orders(void) {
    ncclUniqueId ids[2] = {shared_id(0), shared_id(nranks - 1)};
    ncclComm_t made[2] = {NULL, NULL};
    NCCL(ncclGroupStart());
    for (int i = 0; i < 2; i++) {
        int k = (i + rank) % 2;
        NCCL(ncclCommInitRank(&made[k], nranks, ids[k], rank));
    }
    NCCL(ncclGroupEnd());
    for (int k = 0; k < 2; k++) {
        expect_works(made[k], nranks, ncclSuccess, "made in a group");
    }
    NCCL(ncclGroupStart());
    ncclComm_t parts[2];
    for (int i = 0; i < 2; i++) {
        int k = (i + rank) % 2;
        NCCL(ncclCommSplit(made[k], rank % 2, rank, &parts[k], NULL));
    }
    NCCL(ncclGroupEnd());
    for (int k = 0; k < 2; k++) {
        expect_works(parts[k], rank % 2 ? nranks / 2 : (nranks + 1) / 2, ncclSuccess,
                     "split");
        NCCL(ncclCommDestroy(parts[k]));
        NCCL(ncclCommDestroy(made[k]));
    }
    point(
        "two communicators made in one group, in a different order on every other rank");

    /* An id is good for one communicator. */
    ncclUniqueId id = shared_id(0);
    NCCL(ncclCommInitRank(&made[0], nranks, id, rank));
    NCCL_IS(ncclRemoteError, ncclCommInitRank(&made[1], nranks, id, rank));
    expect(made[1] == NULL, "there is a communicator");
    expect_works(made[0], nranks, ncclSuccess, "the first");
    NCCL(ncclCommDestroy(made[0]));
    memset(&id, 0, sizeof id);
    NCCL_IS(ncclInvalidArgument, ncclCommInitRank(&made[1], nranks, id, rank));
    point("a unique id that was used before, and one that is none");
}

/* The third example of NCCL's manual: several devices in each of several processes. */
static void several_each(void) {
    enum { EACH = 2, MOST = 2 };
    int devices = 0, n = nranks * EACH, first;
    ncclUniqueId id = shared_id(0);
    ncclComm_t comms[MOST], parts[MOST];
    cudaStream_t streams[MOST];
    int *send[MOST], *recv[MOST];
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaGetDevice(&first));
    bool room = devices >= n;
    int enough = room;
    MPI_Allreduce(MPI_IN_PLACE, &enough, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!enough) {
        point("SKIP two ranks in each process: too few devices");
        return;
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < EACH; i++) {
        CUDA(cudaSetDevice(rank * EACH + i));
        NCCL(ncclCommInitRank(&comms[i], n, id, rank * EACH + i));
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < EACH; i++) {
        CUDA(cudaSetDevice(rank * EACH + i));
        CUDA(cudaStreamCreate(&streams[i]));
        send[i] = new_ints((size_t)n * N);
        recv[i] = new_ints((size_t)n * N);
    }
    static const size_t counts[] = {3, N};
    for (int c = 0; c < 2; c++) {
        size_t count = counts[c];
        for (int i = 0; i < EACH; i++) {
            CUDA(cudaSetDevice(rank * EACH + i));
            set_message(send[i], count, rank * EACH + i, c);
            set_ints(recv[i], (size_t)n * N, -1);
            CUDA(cudaDeviceSynchronize());
        }
        NCCL(ncclGroupStart());
        for (int i = 0; i < EACH; i++) {
            NCCL(ncclAllGather(send[i], recv[i], count, ncclInt32, comms[i], streams[i]));
        }
        NCCL(ncclGroupEnd());
        for (int i = 0; i < EACH; i++) {
            CUDA(cudaStreamSynchronize(streams[i]));
            for (int r = 0; r < n; r++) {
                expect_message(recv[i] + (size_t)r * count, count, r, c, "all-gather");
            }
            set_ints(send[i], count, 1);
            CUDA(cudaDeviceSynchronize());
        }
        NCCL(ncclGroupStart());
        for (int i = 0; i < EACH; i++) {
            NCCL(ncclAllReduce(send[i], send[i], count, ncclInt32, ncclSum, comms[i],
                               streams[i]));
        }
        NCCL(ncclGroupEnd());
        NCCL(ncclGroupStart()); /* a ring through all devices */
        for (int i = 0; i < EACH; i++) {
            int me = rank * EACH + i;
            NCCL(ncclSend(send[i], count, ncclInt32, (me + 1) % n, comms[i], streams[i]));
            NCCL(ncclRecv(recv[i], count, ncclInt32, (me + n - 1) % n, comms[i],
                          streams[i]));
        }
        NCCL(ncclGroupEnd());
        for (int i = 0; i < EACH; i++) {
            CUDA(cudaStreamSynchronize(streams[i]));
            expect_ints(send[i], count, n, "all-reduce");
            expect_ints(recv[i], count, n, "ring");
        }
    }
    point("two ranks in each process: all-gather, all-reduce, ring");

    NCCL(ncclGroupStart());
    for (int i = 0; i < EACH; i++) {
        NCCL(ncclCommSplit(comms[i], i, rank, &parts[i], NULL));
    }
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupStart());
    for (int i = 0; i < EACH; i++) {
        NCCL(ncclBroadcast(send[i], send[i], N, ncclInt32, 0, parts[i], streams[i]));
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < EACH; i++) {
        int size;
        NCCL(ncclCommCount(parts[i], &size));
        expect(size == nranks, "part of %d ranks", size);
        CUDA(cudaStreamSynchronize(streams[i]));
        NCCL(ncclCommDestroy(parts[i]));
    }
    for (int i = 0; i < EACH; i++) {
        NCCL(ncclCommDestroy(comms[i]));
        CUDA(cudaStreamDestroy(streams[i]));
        CUDA(cudaFree(send[i]));
        CUDA(cudaFree(recv[i]));
    }
    CUDA(cudaSetDevice(first));
    point("two ranks in each process: split, and destroyed one after the other");
}

/* The manual's fault tolerance example: a rank is absent, the others poll, give up, and
 * go on. */
static void one_is_absent(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id = shared_id(nranks - 1);
    if (rank > 0) {
        ncclComm_t c = NULL;
        int n;
        NCCL_IS(ncclInProgress, ncclCommInitRankConfig(&c, nranks, id, rank, &config));
        expect(c != NULL, "no communicator to ask");
        expect(state_in(c, 200) == ncclInProgress, "it was made");
        NCCL_IS(ncclInvalidArgument, ncclCommCount(c, &n));
        int *a = new_ints(10);
        NCCL_IS(ncclInvalidArgument,
                ncclAllReduce(a, a, 10, ncclInt32, ncclSum, c, stream));
        CUDA(cudaFree(a));
        NCCL(ncclCommAbort(c));
    }
    expect_works(comm, nranks, ncclSuccess, "another one");
    point("a rank is absent: the others ask, abort and go on");

    ncclComm_t c = NULL, part = NULL;
    id = shared_id(0);
    ncclResult_t result = ncclCommInitRankConfig(&c, nranks, id, rank, &config);
    expect(result == ncclInProgress, "ncclCommInitRankConfig: %s", nccl_name(result));
    expect(state_in(c, 5000) == ncclSuccess, "it was not made");
    expect_works(c, nranks, ncclInProgress, "made without blocking");
    NCCL(ncclCommSplit(c, 0, rank, &part, NULL));
    expect(state_in(c, 5000) == ncclSuccess && state_in(part, 5000) == ncclSuccess,
           "it was not split");
    expect_works(part, nranks, ncclInProgress, "split without blocking");
    NCCL_IS(ncclInProgress, ncclCommFinalize(part));
    expect(state_in(part, 5000) == ncclSuccess, "it was not finalized");
    NCCL(ncclCommDestroy(part));

    /* The operation of one that nobody joins is aborted. */
    int *a = new_ints(N);
    set_ints(a, N, 3);
    CUDA(cudaDeviceSynchronize());
    if (rank == 0 && nranks > 1) {
        result = ncclAllReduce(a, a, N, ncclInt32, ncclSum, c, stream);
        expect(result == ncclSuccess || result == ncclInProgress, "ncclAllReduce: %s",
               nccl_name(result));
        for (int i = 0; i < 100; i++) {
            CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
            usleep(1000);
        }
    }
    NCCL(ncclCommAbort(c));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, N, 3, "aborted");
    CUDA(cudaFree(a));
    point("made, split and finalized without blocking; an operation aborted");
}

/* Large blocks are on their way when the communicator is aborted and their memory freed.
 */
static void aborted_on_the_way(void) {
    enum { LARGE = 1 << 20 };
    for (int round = 0; round < 5; round++) {
        ncclComm_t c = NULL;
        NCCL(ncclCommSplit(comm, 0, rank, &c, NULL));
        int *a = new_ints(LARGE), *b = new_ints(LARGE);
        expect_works(c, nranks, ncclSuccess, "before");
        set_ints(a, LARGE, rank);
        CUDA(cudaDeviceSynchronize());
        if (rank % 2 == 0) { /* the others never come */
            NCCL(ncclAllReduce(a, b, LARGE, ncclInt32, ncclSum, c, stream));
            NCCL(ncclAllReduce(a, a, LARGE, ncclInt32, ncclSum, c, stream));
            cudaStreamQuery(stream);
            cudaStreamQuery(stream);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        NCCL(ncclCommAbort(c));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaFree(a));
        CUDA(cudaFree(b));
        expect_works(comm, nranks, ncclSuccess, "afterwards");
    }
    cudaGetLastError();
    point("aborted while data is on its way");
}

/* Of this process; 0 with AddressSanitizer, which keeps what is freed. */
static long kilobytes(void) {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2) {
        resident = 0;
    }
    if (file) {
        fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void growth(void) {
    enum { LARGE = 2 << 20 };
    int *a = new_ints(LARGE), *b = new_ints(LARGE);
    cudaEvent_t event;
    set_ints(a, LARGE, 1);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaEventCreate(&event));
    NCCL(ncclAllReduce(a, b, LARGE, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    long before = kilobytes();
    for (int i = 0; i < 30; i++) {
        NCCL(ncclAllReduce(a, b, LARGE, ncclInt32, ncclMax, comm, stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    long grown = kilobytes() - before;
    expect(grown < 30000, "30 all-reduces of 8 MiB: %ld KiB more", grown);
    point("queued operations do not pile up their memory");

    before = kilobytes();
    for (int i = 0; i < 100000; i++) {
        CUDA(cudaEventRecord(event, stream));
        if (i % 100 == 0) {
            CUDA(cudaStreamSynchronize(stream));
        }
    }
    grown = kilobytes() - before;
    expect(grown < 1000, "100000 records: %ld KiB more", grown);
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("an event recorded again and again");

    int made = nranks > 4 ? 200 : 2100; /* MPICH has 2048 communicators */
    for (int i = 0; i < made; i++) {
        ncclComm_t c = NULL;
        NCCL(ncclCommSplit(comm, 0, rank, &c, NULL));
        NCCL(ncclCommDestroy(c));
        if (i == made / 10) {
            before = kilobytes();
        }
    }
    grown = kilobytes() - before;
    expect(grown < made, "%d communicators: %ld KiB more", made, grown);
    expect_works(comm, nranks, ncclSuccess, "afterwards");
    point("thousands of communicators, one after the other");
}

/* Far more allocations than a process may have mappings. */
static void many_buffers(void) {
    enum { MANY = 40000 };
    void **all = malloc(MANY * sizeof *all);
    int made = 0;
    for (; rank == 0 && made < MANY; made++) {
        if (cudaMalloc(&all[made], 64) != cudaSuccess) {
            break;
        }
    }
    expect(rank > 0 || made == MANY, "%d buffers", made);
    for (int i = 0; i < made; i++) {
        CUDA(cudaFree(all[i]));
    }
    free(all);
    point("forty thousand buffers at once");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    other_orders();
    several_each();
    one_is_absent();
    aborted_on_the_way();
    growth();
    many_buffers();
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
