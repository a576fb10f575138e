/*
 * Communicators: what they say of themselves, several at once, split, configured,
 * finalized and aborted; reductions of one's own; registered memory.
 */
#include "ints.h"
#include "types.h"
#include <unistd.h>

static ncclComm_t comm;
static cudaStream_t stream;
static int rank, nranks;

static void settle(void) {
    CUDA(cudaStreamSynchronize(stream));
}

/* An all-gather of each rank's world rank: which ranks are in `c`, and in which order. */
static void members(ncclComm_t c, int *world_ranks, int n) {
    int *device = new_ints((size_t)n + 1);
    set_ints(device + n, 1, rank);
    NCCL(ncclAllGather(device + n, device, 1, ncclInt32, c, stream));
    settle();
    CUDA(
        cudaMemcpy(world_ranks, device, (size_t)n * sizeof(int), cudaMemcpyDeviceToHost));
    CUDA(cudaFree(device));
}

static void facts(void) {
    int number_of = -1, me = -1, device = -1, current = -2, version = 0;
    NCCL(ncclCommCount(comm, &number_of));
    NCCL(ncclCommUserRank(comm, &me));
    NCCL(ncclCommCuDevice(comm, &device));
    CUDA(cudaGetDevice(&current));
    expect(number_of == nranks, "ncclCommCount gave %d", number_of);
    expect(me == rank, "ncclCommUserRank gave %d", me);
    expect(device == current, "ncclCommCuDevice gave %d, current is %d", device, current);
    NCCL(ncclGetVersion(&version));
    expect(version == NCCL_VERSION_CODE, "ncclGetVersion gave %d", version);
    ncclResult_t error = ncclInternalError;
    NCCL(ncclCommGetAsyncError(comm, &error));
    expect(error == ncclSuccess, "asynchronous error %d", error);
    point("count, rank, device, version, no asynchronous error");

    if (!getenv("CPU_DEVICES") && !getenv("CUDA_VISIBLE_DEVICES")) {
        int devices = 0;
        CUDA(cudaGetDeviceCount(&devices));
        expect(devices == nranks, "%d devices for %d ranks", devices, nranks);
    }
    point("as many devices as ranks on the host, unless the environment says more");
}

static void unique_ids(void) {
    ncclUniqueId a, b;
    NCCL(ncclGetUniqueId(&a));
    NCCL(ncclGetUniqueId(&b));
    expect(memcmp(&a, &b, sizeof a) != 0, "two calls gave the same id");
    point("every unique id is another");
}

/* Two communicators on two streams, used in the same order and waited for in another. */
static void two_at_once(void) {
    ncclComm_t other = world_comm();
    cudaStream_t second;
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    size_t n = 70001;
    int *a = new_ints(n), *b = new_ints(n);
    for (int round = 0; round < 3; round++) {
        set_ints(a, n, 1);
        set_ints(b, n, 10);
        CUDA(cudaDeviceSynchronize());
        NCCL(ncclAllReduce(a, a, n, ncclInt32, ncclSum, comm, stream));
        NCCL(ncclAllReduce(b, b, n, ncclInt32, ncclSum, other, second));
        CUDA(cudaStreamSynchronize(rank % 2 ? stream : second));
        CUDA(cudaStreamSynchronize(rank % 2 ? second : stream));
        expect_ints(a, n, nranks, "first communicator");
        expect_ints(b, n, 10 * nranks, "second communicator");
    }
    NCCL(ncclCommDestroy(other));
    CUDA(cudaStreamDestroy(second));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("two communicators on two streams, waited for in different orders");
}

/* The ranks of a communicator need not be in MPI's order, nor all of them in it. */
static void other_orders(void) {
    ncclUniqueId id;
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclComm_t reversed = NULL;
    NCCL(ncclCommInitRank(&reversed, nranks, id, nranks - 1 - rank));
    int order[64];
    members(reversed, order, nranks);
    for (int r = 0; r < nranks; r++) {
        expect(order[r] == nranks - 1 - r, "rank %d is MPI's rank %d", r, order[r]);
    }
    NCCL(ncclCommDestroy(reversed));
    point("ranks in reversed order");

    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int half_rank, half_size;
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    if (half_rank == 0) {
        NCCL(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, half);
    ncclComm_t part = NULL;
    NCCL(ncclCommInitRank(&part, half_size, id, half_rank));
    members(part, order, half_size);
    for (int r = 0; r < half_size; r++) {
        expect(order[r] == 2 * r + rank % 2, "rank %d is MPI's rank %d", r, order[r]);
    }
    NCCL(ncclCommDestroy(part));
    MPI_Comm_free(&half);
    point("two communicators side by side, of half the ranks each");
}

static void split(void) {
    int order[64], n = -1, me = -1;
    ncclComm_t part = comm;
    NCCL(ncclCommSplit(comm, rank % 2, -rank, &part, NULL));
    int size = rank % 2 ? nranks / 2 : (nranks + 1) / 2;
    NCCL(ncclCommCount(part, &n));
    NCCL(ncclCommUserRank(part, &me));
    expect(n == size, "%d ranks, expected %d", n, size);
    expect(me == size - 1 - rank / 2, "rank %d, expected %d", me, size - 1 - rank / 2);
    members(part, order, size);
    for (int r = 0; r < size; r++) {
        int expected = 2 * (size - 1 - r) + rank % 2;
        expect(order[r] == expected, "rank %d is world rank %d, expected %d", r, order[r],
               expected);
    }
    point("split by colour, keys that reverse the order");

    ncclComm_t again = NULL;
    NCCL(ncclCommSplit(part, me / 2, 0, &again, NULL));
    int pair = me / 2 * 2 + 1 < size ? 2 : 1;
    NCCL(ncclCommCount(again, &n));
    expect(n == pair, "%d ranks, expected %d", n, pair);
    members(again, order, pair);
    for (int r = 0; r < pair; r++) {
        int in_part = me / 2 * 2 + r;
        int expected = 2 * (size - 1 - in_part) + rank % 2;
        expect(order[r] == expected, "rank %d is world rank %d, expected %d", r, order[r],
               expected);
    }
    point("split of a split; equal keys keep the order");

    /* Parent and children serve side by side. */
    int *a = new_ints(3);
    set_ints(a, 3, 1);
    NCCL(ncclAllReduce(a, a, 1, ncclInt32, ncclSum, comm, stream));
    NCCL(ncclAllReduce(a + 1, a + 1, 1, ncclInt32, ncclSum, part, stream));
    NCCL(ncclAllReduce(a + 2, a + 2, 1, ncclInt32, ncclSum, again, stream));
    settle();
    expect_ints(a, 1, nranks, "parent");
    expect_ints(a + 1, 1, size, "child");
    expect_ints(a + 2, 1, pair, "grandchild");
    NCCL(ncclCommDestroy(again));
    NCCL(ncclCommDestroy(part));
    set_ints(a, 1, 1);
    NCCL(ncclAllReduce(a, a, 1, ncclInt32, ncclSum, comm, stream));
    settle();
    expect_ints(a, 1, nranks, "parent, after its children are gone");
    CUDA(cudaFree(a));
    point("parent and children side by side; the parent outlives them");

    ncclComm_t rest = comm;
    bool out = rank == nranks / 2;
    NCCL(ncclCommSplit(comm, out ? NCCL_SPLIT_NOCOLOR : 3, 0, &rest, NULL));
    if (out) {
        expect(rest == NCCL_COMM_NULL, "NCCL_SPLIT_NOCOLOR left %p", (void *)rest);
    } else {
        NCCL(ncclCommCount(rest, &n));
        expect(n == nranks - 1, "%d ranks, expected %d", n, nranks - 1);
        members(rest, order, nranks - 1);
        for (int r = 0; r < nranks - 1; r++) {
            expect(order[r] == r + (r >= nranks / 2), "rank %d is world rank %d", r,
                   order[r]);
        }
        NCCL(ncclCommDestroy(rest));
    }
    point("split with NCCL_SPLIT_NOCOLOR on one rank");

    ncclComm_t alone = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    config.commName = "alone";
    NCCL(ncclCommSplit(comm, rank, 0, &alone, &config));
    NCCL(ncclCommCount(alone, &n));
    expect(n == 1, "%d ranks, expected 1", n);
    NCCL(ncclCommDestroy(alone));
    point("split into communicators of one rank, with a configuration");
}

/* Every process may also have communicators of its own. */
static void of_its_own(void) {
    int device = -1, n = -1;
    ncclComm_t own = NULL;
    CUDA(cudaGetDevice(&device));
    NCCL(ncclCommInitAll(&own, 1, &device));
    NCCL(ncclCommCount(own, &n));
    expect(n == 1, "%d ranks", n);
    int *a = new_ints(2);
    set_ints(a, 2, rank);
    NCCL(ncclAllReduce(a, a, 1, ncclInt32, ncclSum, own, stream));
    NCCL(ncclAllReduce(a + 1, a + 1, 1, ncclInt32, ncclSum, comm, stream));
    settle();
    expect_ints(a, 1, rank, "communicator of this process");
    expect_ints(a + 1, 1, nranks * (nranks - 1) / 2, "communicator of all");
    CUDA(cudaFree(a));
    NCCL(ncclCommDestroy(own));
    point("ncclCommInitAll in each process, beside the communicator of all");
}

/* The communicator's state once it is known, or after five seconds. */
static ncclResult_t state_in_time(ncclComm_t c) {
    ncclResult_t state = ncclInProgress;
    for (int i = 0; i < 5000 && state == ncclInProgress; i++) {
        NCCL(ncclCommGetAsyncError(c, &state));
        if (state == ncclInProgress) {
            usleep(1000);
        }
    }
    return state;
}

static void configured(void) {
    ncclUniqueId id;
    ncclComm_t c = NULL;
    int *a = new_ints(10);
    for (int blocking = 0; blocking < 2; blocking++) {
        if (rank == 0) {
            NCCL(ncclGetUniqueId(&id));
        }
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = blocking;
        config.minCTAs = 1;
        config.maxCTAs = 4;
        config.commName = "configured";
        ncclResult_t result = ncclCommInitRankConfig(&c, nranks, id, rank, &config);
        expect(result == ncclSuccess || (!blocking && result == ncclInProgress),
               "blocking %d: ncclCommInitRankConfig returned %s", blocking,
               nccl_name(result));
        ncclResult_t state = state_in_time(c);
        expect(state == ncclSuccess, "blocking %d: state %s", blocking, nccl_name(state));
        set_ints(a, 10, 1);
        result = ncclAllReduce(a, a, 10, ncclInt32, ncclSum, c, stream);
        expect(result == ncclSuccess || (!blocking && result == ncclInProgress),
               "ncclAllReduce returned %s", nccl_name(result));
        state_in_time(c);
        settle();
        expect_ints(a, 10, nranks, "configured communicator");
        result = ncclCommFinalize(c);
        expect(result == ncclSuccess || (!blocking && result == ncclInProgress),
               "ncclCommFinalize returned %s", nccl_name(result));
        state = state_in_time(c);
        expect(state == ncclSuccess, "after ncclCommFinalize: %s", nccl_name(state));
        NCCL(ncclCommDestroy(c));
        point("a communicator with a configuration, blocking %d", blocking);
    }
    CUDA(cudaFree(a));
}

/* The data are 0, 1, 0, 1, … times the factor. */
static void expect_multiples(const struct type *t, const char *host, size_t n,
                             number factor, const char *what) {
    for (size_t i = 0; i < n; i++) {
        number got = load(t, host, i);
        if (!expect(got == factor * (number)(i % 2), "%s of %s: element %zu is %Lg", what,
                    t->name, i, got)) {
            return;
        }
    }
}

/* Each rank multiplies by its own scalar. The data are small enough for every type. */
static void pre_mul_sum(void) {
    enum { N = 700 }; /* even: so every block begins with 0 */
    char *data, *scalar, *result;
    CUDA(cudaMalloc((void **)&data, (size_t)nranks * N * 8));
    CUDA(cudaMalloc((void **)&result, N * 8));
    CUDA(cudaMalloc((void **)&scalar, 8));
    for (int t = 0; t < TYPES; t++) {
        const struct type *type = &types[t];
        char host[N * 8], factor[8];
        for (int where = 0; where < 2; where++) {
            /* The first and the last rank count, with 2 and 1 (or 3 in all, alone). */
            int mine = rank == 0 ? 2 : rank == nranks - 1 ? 1 : 0;
            char *all = malloc((size_t)nranks * N * type->size);
            for (size_t i = 0; i < (size_t)nranks * N; i++) {
                store(type, all, i, (number)(i % 2));
            }
            CUDA(cudaMemcpy(data, all, (size_t)nranks * N * type->size,
                            cudaMemcpyHostToDevice));
            free(all);
            store(type, factor, 0, mine);
            ncclRedOp_t op = ncclNumOps;
            if (where == 0) {
                NCCL(ncclRedOpCreatePreMulSum(&op, factor, type->type,
                                              ncclScalarHostImmediate, comm));
                memset(factor, 0x77, sizeof factor); /* was read already */
            } else {
                CUDA(cudaMemset(scalar, 0x77, 8));
                NCCL(ncclRedOpCreatePreMulSum(&op, scalar, type->type, ncclScalarDevice,
                                              comm));
                /* Will be read when the collective runs. */
                CUDA(cudaMemcpyAsync(scalar, factor, type->size, cudaMemcpyHostToDevice,
                                     stream));
            }
            expect((int)op >= ncclNumOps && op <= ncclMaxRedOp, "made operator %d",
                   (int)op);
            number factors = nranks == 1 ? 2 : 3;
            NCCL(ncclAllReduce(data, result, N, type->type, op, comm, stream));
            CUDA(cudaMemcpyAsync(host, result, N * type->size, cudaMemcpyDeviceToHost,
                                 stream));
            settle();
            expect_multiples(type, host, N, factors, "all-reduce");
            int root = nranks - 1;
            NCCL(ncclReduce(data, result, N, type->type, op, root, comm, stream));
            char *block = data + (size_t)rank * N * type->size;
            NCCL(ncclReduceScatter(data, block, N, type->type, op, comm, stream));
            NCCL(ncclRedOpDestroy(op, comm)); /* the calls have returned */
            CUDA(cudaMemcpyAsync(host, result, N * type->size, cudaMemcpyDeviceToHost,
                                 stream));
            settle();
            if (rank == root) {
                expect_multiples(type, host, N, factors, "reduce");
            }
            CUDA(cudaMemcpy(host, block, N * type->size, cudaMemcpyDeviceToHost));
            expect_multiples(type, host, N, factors, "reduce-scatter");
        }
        point("PreMulSum of %s, scalar on the host and on the device", type->name);
    }
    CUDA(cudaFree(data));
    CUDA(cudaFree(result));
    CUDA(cudaFree(scalar));
}

/* The product is made in the data's own type: 64 bits are kept, and more wrap around. */
static void wide_scalars(void) {
    static const uint64_t factors[] = {((uint64_t)1 << 60) + 1, ~(uint64_t)0 - 6};
    static const ncclDataType_t of[] = {ncclInt64, ncclUint64};
    uint64_t *data, x = 5, got;
    ncclRedOp_t op;
    CUDA(cudaMalloc((void **)&data, sizeof *data));
    for (int t = 0; t < 2; t++) {
        for (int f = 0; f < 2; f++) {
            uint64_t factor = factors[f];
            NCCL(ncclRedOpCreatePreMulSum(&op, &factor, of[t], ncclScalarHostImmediate,
                                          comm));
            CUDA(cudaMemcpy(data, &x, sizeof x, cudaMemcpyHostToDevice));
            NCCL(ncclAllReduce(data, data, 1, of[t], op, comm, stream));
            NCCL(ncclRedOpDestroy(op, comm));
            settle();
            CUDA(cudaMemcpy(&got, data, sizeof got, cudaMemcpyDeviceToHost));
            uint64_t expected = x * factor * (uint64_t)nranks;
            expect(got == expected, "%s times %llu: 0x%llx, expected 0x%llx",
                   t ? "uint64" : "int64", (unsigned long long)factor,
                   (unsigned long long)got, (unsigned long long)expected);
        }
    }
    CUDA(cudaFree(data));
    point("PreMulSum of 64-bit integers keeps every bit");
}

/* Several operators at once, and the same one again and again. */
static void many_operators(void) {
    ncclRedOp_t ops[20];
    float host[20];
    float *data;
    CUDA(cudaMalloc((void **)&data, sizeof host));
    for (int i = 0; i < 20; i++) {
        host[i] = 1;
    }
    CUDA(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    for (int i = 0; i < 20; i++) {
        float factor = (float)(i * 10 + rank);
        NCCL(ncclRedOpCreatePreMulSum(&ops[i], &factor, ncclFloat,
                                      ncclScalarHostImmediate, comm));
        for (int j = 0; j < i; j++) {
            expect(ops[i] != ops[j], "operators %d and %d are the same", i, j);
        }
    }
    NCCL(ncclGroupStart());
    for (int i = 19; i >= 0; i--) {
        NCCL(ncclAllReduce(data + i, data + i, 1, ncclFloat, ops[i], comm, stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
    settle();
    for (int i = 0; i < 20; i++) {
        NCCL(ncclRedOpDestroy(ops[i], comm));
        float expected = (float)(i * 10 * nranks + nranks * (nranks - 1) / 2);
        expect(host[i] == expected, "operator %d gave %g, expected %g", i, host[i],
               expected);
    }
    CUDA(cudaFree(data));
    point("twenty operators at once, in a group");
}

static void registered(void) {
    int *a = NULL;
    void *handle = NULL;
    ncclWindow_t window = NULL;
    NCCL(ncclMemAlloc((void **)&a, 8192));
    expect(a != NULL, "ncclMemAlloc gave no memory");
    NCCL(ncclCommRegister(comm, a, 8192, &handle));
    set_ints(a, 2048, rank);
    NCCL(ncclAllReduce(a, a, 2048, ncclInt32, ncclMax, comm, stream));
    settle();
    expect_ints(a, 2048, nranks - 1, "registered buffer");
    NCCL_IS(ncclInternalError, ncclCommWindowDeregister(comm, handle));
    NCCL(ncclCommDeregister(comm, handle));
    NCCL_IS(ncclInvalidUsage, ncclCommDeregister(comm, handle)); /* it is gone */
    NCCL(ncclCommDeregister(comm, NULL));
    NCCL_IS(ncclInvalidArgument,
            ncclCommWindowRegister(comm, a + 64, 4096, &window, NCCL_WIN_DEFAULT));
    NCCL(ncclCommWindowRegister(comm, a, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclAllReduce(a, a, 2048, ncclInt32, ncclSum, comm, stream));
    settle();
    expect_ints(a, 2048, nranks * (nranks - 1), "window");
    NCCL_IS(ncclInvalidUsage, ncclCommDeregister(comm, window));
    NCCL(ncclCommWindowDeregister(comm, window));
    NCCL(ncclMemFree(a));
    point("ncclMemAlloc, registered buffers and windows");
}

static void endings(void) {
    int *a = new_ints(100);
    ncclComm_t c = world_comm();
    set_ints(a, 100, 1);
    NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, c, stream));
    NCCL(ncclCommFinalize(c)); /* waits for what is queued */
    ncclResult_t state = ncclInternalError;
    NCCL(ncclCommGetAsyncError(c, &state));
    expect(state == ncclSuccess, "state after ncclCommFinalize: %s", nccl_name(state));
    NCCL(ncclCommDestroy(c));
    settle();
    expect_ints(a, 100, nranks, "all-reduce before ncclCommFinalize");
    point("finalize, then destroy");

    c = world_comm();
    NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, c, stream));
    settle();
    NCCL(ncclCommAbort(c));
    set_ints(a, 100, 2);
    NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, comm, stream));
    settle();
    expect_ints(a, 100, 2 * nranks, "another communicator after ncclCommAbort");
    point("abort one, use another");

    for (int i = 0; i < 5; i++) {
        c = world_comm();
        set_ints(a, 100, i);
        NCCL(ncclAllReduce(a, a, 100, ncclInt32, ncclSum, c, stream));
        settle();
        expect_ints(a, 100, i * nranks, "one communicator after the other");
        NCCL(ncclCommDestroy(c));
    }
    CUDA(cudaFree(a));
    point("one communicator after the other");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreate(&stream));
    facts();
    unique_ids();
    two_at_once();
    other_orders();
    split();
    of_its_own();
    configured();
    pre_mul_sum();
    wide_scalars();
    many_operators();
    registered();
    endings();
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaDeviceReset());
    point("clean-up");
    return finish();
}
