/*
 * One process, all devices, no MPI: ncclCommInitAll, and ncclCommInitRank for every
 * device within one group. One thread makes the calls of all ranks, so every operation is
 * a group.
 */
#define TAP_ALONE
#include "ints.h"

enum { MOST = 8, N = 3000 };

static int ndev;
static ncclComm_t comms[MOST];
static cudaStream_t streams[MOST];
static int *send[MOST], *recv[MOST];

static void settle(void) {
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaStreamSynchronize(streams[d]));
    }
}

/* Every device d sends message (d, tag); what it receives starts as -1. */
static void fill(size_t n, int tag) {
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaSetDevice(d));
        set_message(send[d], n, d, tag);
        set_ints(recv[d], n, -1);
        CUDA(cudaDeviceSynchronize());
    }
}

/* One call for every rank r, in one group. */
#define EACH(call)                       \
    do {                                 \
        NCCL(ncclGroupStart());          \
        for (int r = 0; r < ndev; r++) { \
            NCCL(call);                  \
        }                                \
        NCCL(ncclGroupEnd());            \
        settle();                        \
    } while (0)

static void expect_sum(const int *device, int first, size_t n, const char *what) {
    int *host = malloc(n * sizeof(int));
    CUDA(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < ndev; r++) {
            sum += value_of(r, 1, (size_t)first + i);
        }
        if (!expect(host[i] == sum, "%s: element %zu is %d, expected %d", what, i,
                    host[i], sum)) {
            break;
        }
    }
    free(host);
}

static void facts(void) {
    for (int d = 0; d < ndev; d++) {
        int n = -1, rank = -1, device = -1;
        ncclResult_t state = ncclInternalError;
        NCCL(ncclCommCount(comms[d], &n));
        NCCL(ncclCommUserRank(comms[d], &rank));
        NCCL(ncclCommCuDevice(comms[d], &device));
        NCCL(ncclCommGetAsyncError(comms[d], &state));
        expect(n == ndev && rank == d && device == d && state == ncclSuccess,
               "communicator %d: %d ranks, rank %d, device %d, state %d", d, n, rank,
               device, (int)state);
    }
    point("one communicator for each of %d devices", ndev);
}

static void collectives(void) {
    int root = ndev - 1;
    size_t each = N / (size_t)ndev;
    fill(N, 1);
    EACH(ncclAllReduce(send[r], recv[r], N, ncclInt32, ncclSum, comms[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        expect_sum(recv[r], 0, N, "ncclAllReduce");
        expect_message(send[r], N, r, 1, "its sendbuff");
    }
    point("ncclAllReduce");
    fill(N, 1);
    EACH(ncclBroadcast(send[r], recv[r], N, ncclInt32, root, comms[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        expect_message(recv[r], N, root, 1, "ncclBroadcast");
    }
    point("ncclBroadcast");
    fill(N, 1);
    EACH(ncclReduce(send[r], recv[r], N, ncclInt32, ncclSum, 0, comms[r], streams[r]));
    expect_sum(recv[0], 0, N, "ncclReduce");
    point("ncclReduce");
    fill(N, 1);
    EACH(ncclAllGather(send[r], recv[r], each, ncclInt32, comms[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        for (int from = 0; from < ndev; from++) {
            expect_message(recv[r] + (size_t)from * each, each, from, 1, "ncclAllGather");
        }
    }
    point("ncclAllGather");
    fill(N, 1);
    EACH(ncclReduceScatter(send[r], recv[r], each, ncclInt32, ncclSum, comms[r],
                           streams[r]));
    for (int r = 0; r < ndev; r++) {
        expect_sum(recv[r], r * (int)each, each, "ncclReduceScatter");
    }
    point("ncclReduceScatter");
    for (int from = 0; from < ndev; from++) {
        CUDA(cudaSetDevice(from));
        for (int to = 0; to < ndev; to++) {
            set_message(send[from] + (size_t)to * each, each, from, to);
        }
        set_ints(recv[from], N, -1);
        CUDA(cudaDeviceSynchronize());
    }
    EACH(ncclAlltoAll(send[r], recv[r], each, ncclInt32, comms[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        for (int from = 0; from < ndev; from++) {
            expect_message(recv[r] + (size_t)from * each, each, from, r, "ncclAlltoAll");
        }
    }
    point("ncclAlltoAll");
    fill(N, 1);
    EACH(ncclGather(send[r], recv[r], each, ncclInt32, root, comms[r], streams[r]));
    for (int from = 0; from < ndev; from++) {
        expect_message(recv[root] + (size_t)from * each, each, from, 1, "ncclGather");
    }
    for (int to = 0; to < ndev; to++) {
        set_message(send[root] + (size_t)to * each, each, root, to);
    }
    CUDA(cudaDeviceSynchronize());
    EACH(ncclScatter(send[r], recv[r], each, ncclInt32, root, comms[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        expect_message(recv[r], each, root, r, "ncclScatter");
    }
    point("ncclGather and ncclScatter");
}

static void floats(void) {
    float *data[MOST], host[100];
    ncclRedOp_t ops[MOST];
    for (int d = 0; d < ndev; d++) {
        float factor = (float)d + 1;
        for (int i = 0; i < 100; i++) {
            host[i] = (float)(i * (d + 1)) + 0.5f;
        }
        CUDA(cudaSetDevice(d));
        CUDA(cudaMalloc((void **)&data[d], sizeof host));
        CUDA(cudaMemcpy(data[d], host, sizeof host, cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize());
        NCCL(ncclRedOpCreatePreMulSum(&ops[d], &factor, ncclFloat,
                                      ncclScalarHostImmediate, comms[d]));
    }
    EACH(ncclAllReduce(data[r], data[r], 100, ncclFloat, ncclAvg, comms[r], streams[r]));
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaMemcpy(host, data[d], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 100; i++) {
            float expected = (float)i * (float)(ndev + 1) / 2 + 0.5f;
            expect(host[i] > expected * 0.9999f && host[i] < expected * 1.0001f,
                   "device %d: average %d is %g, expected %g", d, i, host[i], expected);
        }
        for (int i = 0; i < 100; i++) {
            host[i] = (float)i;
        }
        CUDA(cudaMemcpy(data[d], host, sizeof host, cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize());
    }
    EACH(ncclAllReduce(data[r], data[r], 100, ncclFloat, ops[r], comms[r], streams[r]));
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaMemcpy(host, data[d], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 100; i++) {
            float expected = (float)(i * ndev * (ndev + 1) / 2);
            expect(host[i] == expected, "device %d: element %d is %g, expected %g", d, i,
                   host[i], expected);
        }
        NCCL(ncclRedOpDestroy(ops[d], comms[d]));
        CUDA(cudaFree(data[d]));
    }
    point("averages and PreMulSum of float");
}

static void messages(void) {
    fill(N, 1);
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        NCCL(ncclSend(send[r], N, ncclInt32, (r + 1) % ndev, comms[r], streams[r]));
        NCCL(
            ncclRecv(recv[r], N, ncclInt32, (r + ndev - 1) % ndev, comms[r], streams[r]));
    }
    NCCL(ncclGroupEnd());
    settle();
    for (int r = 0; r < ndev; r++) {
        expect_message(recv[r], N, (r + ndev - 1) % ndev, 1, "ring");
    }
    point("a ring of sends and receives");

    /* Inner groups for the ranks, one outer group around them. */
    fill(N, 2);
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        NCCL(ncclGroupStart());
        for (int peer = 0; peer < ndev; peer++) {
            NCCL(ncclSend(send[r], 10, ncclInt32, peer, comms[r], streams[r]));
            NCCL(
                ncclRecv(recv[r] + 10 * peer, 10, ncclInt32, peer, comms[r], streams[r]));
        }
        NCCL(ncclGroupEnd());
    }
    NCCL(ncclGroupEnd());
    settle();
    for (int r = 0; r < ndev; r++) {
        for (int peer = 0; peer < ndev; peer++) {
            expect_message(recv[r] + 10 * peer, 10, peer, 2, "all to all");
        }
    }
    point("everyone to everyone, nested groups");
}

/* Several operations in a row, and a wait for the last device first. */
static void in_a_row(void) {
    fill(N, 1);
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaSetDevice(d));
        set_ints(send[d], N, 1);
        CUDA(cudaDeviceSynchronize());
    }
    int expected = 1;
    for (int i = 0; i < 4; i++) {
        NCCL(ncclGroupStart());
        for (int r = 0; r < ndev; r++) {
            NCCL(ncclAllReduce(send[r], send[r], N, ncclInt32, ncclSum, comms[r],
                               streams[r]));
        }
        NCCL(ncclGroupEnd());
        expected *= ndev;
    }
    for (int d = ndev - 1; d >= 0; d--) {
        CUDA(cudaStreamSynchronize(streams[d]));
        CUDA(cudaStreamQuery(streams[d]));
        expect_ints(send[d], N, expected, "four sums in a row");
    }
    point("several operations, waited for at the end");
}

static void splits(void) {
    ncclComm_t parts[MOST];
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        parts[r] = comms[r];
        NCCL(ncclCommSplit(comms[r], r == 0 && ndev > 2 ? NCCL_SPLIT_NOCOLOR : r % 2, -r,
                           &parts[r], NULL));
    }
    NCCL(ncclGroupEnd());
    int sizes[2] = {0, 0};
    for (int r = 0; r < ndev; r++) {
        sizes[r % 2] += !(r == 0 && ndev > 2);
    }
    fill(N, 1);
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        if (r == 0 && ndev > 2) {
            expect(parts[0] == NULL, "NCCL_SPLIT_NOCOLOR left a communicator");
        } else {
            int n = -1, rank = -1, after = 0;
            NCCL(ncclCommCount(parts[r], &n));
            NCCL(ncclCommUserRank(parts[r], &rank));
            for (int other = r + 1; other < ndev; other++) {
                after += other % 2 == r % 2;
            }
            expect(n == sizes[r % 2] && rank == after,
                   "device %d: rank %d of %d, expected "
                   "%d of %d",
                   r, rank, n, after, sizes[r % 2]);
            NCCL(ncclBroadcast(send[r], recv[r], N, ncclInt32, 0, parts[r], streams[r]));
        }
    }
    NCCL(ncclGroupEnd());
    settle();
    for (int r = 0; r < ndev; r++) {
        if (parts[r] != NULL) {
            int last = (ndev - 1) % 2 == r % 2 ? ndev - 1 : ndev - 2;
            expect_message(recv[r], N, last, 1, "broadcast in a part");
        }
    }
    for (int r = 0; r < ndev; r++) {
        if (parts[r] != NULL) {
            NCCL(ncclCommDestroy(parts[r]));
        }
    }
    point("split within one process");
}

static void lists(void) {
    ncclComm_t reversed[MOST + 1], one = NULL;
    int list[MOST], device = -1, rank = -1;
    for (int i = 0; i < ndev; i++) {
        list[i] = ndev - 1 - i;
    }
    NCCL(ncclCommInitAll(reversed, ndev, list));
    for (int i = 0; i < ndev; i++) {
        NCCL(ncclCommUserRank(reversed[i], &rank));
        NCCL(ncclCommCuDevice(reversed[i], &device));
        expect(rank == i && device == list[i], "place %d: rank %d on device %d", i, rank,
               device);
    }
    fill(N, 1);
    EACH(ncclBroadcast(send[list[r]], recv[list[r]], N, ncclInt32, 0, reversed[r],
                       streams[list[r]]));
    for (int r = 0; r < ndev; r++) {
        expect_message(recv[r], N, ndev - 1, 1, "broadcast");
        NCCL(ncclCommDestroy(reversed[r]));
    }
    list[0] = ndev - 1;
    NCCL(ncclCommInitAll(&one, 1, list));
    NCCL(ncclCommCuDevice(one, &device));
    expect(device == ndev - 1, "device %d", device);
    NCCL(ncclCommDestroy(one));
    point("a list of devices gives their order");

    if (ndev > 1) {
        list[0] = list[1] = 0;
        NCCL_IS(ncclInvalidUsage, ncclCommInitAll(reversed, 2, list));
        expect(strlen(ncclGetLastError(NULL)) > 3, "no text");
    }
    list[0] = ndev;
    expect(ncclCommInitAll(&one, 1, list) != ncclSuccess, "took device %d", ndev);
    expect(ncclCommInitAll(reversed, ndev + 1, NULL) != ncclSuccess, "took %d devices",
           ndev + 1);
    expect(strlen(ncclGetLastError(NULL)) > 3, "no text");
    point("a device twice, a device that is not there, too many devices");
}

/* The other way for one thread: a group of ncclCommInitRank. */
static void init_rank_in_a_group(void) {
    ncclUniqueId id;
    ncclComm_t made[MOST];
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        CUDA(cudaSetDevice(ndev - 1 - r));
        NCCL(ncclCommInitRank(&made[r], ndev, id, r));
    }
    NCCL(ncclGroupEnd());
    fill(N, 1);
    EACH(ncclAllReduce(send[ndev - 1 - r], recv[ndev - 1 - r], N, ncclInt32, ncclSum,
                       made[r], streams[ndev - 1 - r]));
    for (int r = 0; r < ndev; r++) {
        int device = -1;
        NCCL(ncclCommCuDevice(made[r], &device));
        expect(device == ndev - 1 - r, "rank %d on device %d", r, device);
        expect_sum(recv[r], 0, N, "all-reduce");
    }
    NCCL(ncclGroupStart());
    for (int r = 0; r < ndev; r++) {
        NCCL(ncclCommFinalize(made[r]));
    }
    NCCL(ncclGroupEnd());
    for (int r = 0; r < ndev; r++) {
        NCCL(ncclCommDestroy(made[r]));
    }
    point("ncclCommInitRank for every device, in one group");
}

/* From a communicator of device 0 alone to one of all devices. */
static void grow_in_a_group(void) {
    ncclUniqueId id;
    ncclComm_t one, made[MOST];
    if (ndev == 1)
        return;
    NCCL(ncclGetUniqueId(&id));
    CUDA(cudaSetDevice(0));
    NCCL(ncclCommInitRank(&one, 1, id, 0));
    NCCL(ncclCommGetUniqueId(one, &id));
    NCCL(ncclGroupStart());
    NCCL(ncclCommGrow(one, ndev, NULL, -1, &made[0], NULL));
    for (int r = 1; r < ndev; r++) {
        CUDA(cudaSetDevice(r));
        NCCL(ncclCommGrow(NULL, ndev, &id, r, &made[r], NULL));
    }
    NCCL(ncclGroupEnd());
    NCCL(ncclCommDestroy(one));
    fill(N, 1);
    EACH(ncclAllReduce(send[r], recv[r], N, ncclInt32, ncclSum, made[r], streams[r]));
    for (int r = 0; r < ndev; r++) {
        expect_sum(recv[r], 0, N, "all-reduce");
        NCCL(ncclCommDestroy(made[r]));
    }
    point("ncclCommGrow for every device, in one group");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (cudaGetDeviceCount(&ndev) != cudaSuccess || ndev < 1 || ndev > MOST) {
        bail("1 to %d devices are needed", MOST);
    }
    if (ncclCommInitAll(comms, ndev, NULL) != ncclSuccess) {
        bail("ncclCommInitAll: %s", ncclGetLastError(NULL));
    }
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaStreamCreate(&streams[d]));
        send[d] = new_ints(N);
        recv[d] = new_ints(N);
    }
    facts();
    collectives();
    floats();
    messages();
    in_a_row();
    splits();
    lists();
    init_rank_in_a_group();
    grow_in_a_group();
    for (int d = 0; d < ndev; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaFree(send[d]));
        CUDA(cudaFree(recv[d]));
        CUDA(cudaStreamDestroy(streams[d]));
        NCCL(ncclCommDestroy(comms[d]));
    }
    point("clean-up");
    return finish();
}
