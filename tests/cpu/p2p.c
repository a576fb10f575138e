/*
 * Sends and receives, alone and in groups: rings, pairs, to oneself, many at once, of
 * uneven sizes; groups in groups, groups of collectives, groups over communicators and
 * streams.
 */
#define TAP_THREADS
#include "ints.h"
#include "types.h"

static ncclComm_t comm;
static cudaStream_t stream;
static int rank, nranks;

static void settle(void) {
    CUDA(cudaStreamSynchronize(stream));
}

static void ring(void) {
    static const size_t counts[] = {0, 1, 5, 1000, 70001, 262147};
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    int *send = new_ints(262147), *recv = new_ints(262147);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t n = counts[c];
        set_message(send, n, rank, (int)c);
        set_ints(recv, n, -1);
        NCCL(ncclGroupStart());
        NCCL(ncclSend(send, n, ncclInt32, right, comm, stream));
        NCCL(ncclRecv(recv, n, ncclInt32, left, comm, stream));
        NCCL(ncclGroupEnd());
        settle();
        expect_message(recv, n, left, (int)c, "ring");
        expect_message(send, n, rank, (int)c, "the sender's buffer");
    }
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("ring, 0 … 1 MiB");
}

/* The order of the two calls in a group is free. */
static void ring_recv_first(void) {
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    int *send = new_ints(100), *recv = new_ints(100);
    set_message(send, 100, rank, 7);
    NCCL(ncclGroupStart());
    NCCL(ncclRecv(recv, 100, ncclInt32, left, comm, stream));
    NCCL(ncclSend(send, 100, ncclInt32, right, comm, stream));
    NCCL(ncclGroupEnd());
    settle();
    expect_message(recv, 100, left, 7, "ring, receive first");
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("ring, receive before send in the group");
}

/* What goes to one rank in a group goes in order: the last one stays. */
static void into_one_buffer(void) {
    enum { N = 262147, TIMES = 5 };
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    int *send = new_ints(N * TIMES), *recv = new_ints(N);
    for (int i = 0; i < TIMES; i++)
        set_message(send + i * N, N, rank, i);
    set_ints(recv, N, -1);
    NCCL(ncclGroupStart());
    for (int i = 0; i < TIMES; i++) {
        NCCL(ncclSend(send + i * N, N, ncclInt32, right, comm, stream));
        NCCL(ncclRecv(recv, N, ncclInt32, left, comm, stream));
    }
    NCCL(ncclGroupEnd());
    settle();
    expect_message(recv, N, left, TIMES - 1, "the last of those into one buffer");
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("several messages of a group into one buffer");
}

static void every_type(void) {
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    enum { N = 333 };
    char *send, *recv;
    CUDA(cudaMalloc((void **)&send, N * 8));
    CUDA(cudaMalloc((void **)&recv, N * 8));
    for (int t = 0; t < TYPES; t++) {
        char mine[N * 8], theirs[N * 8], got[N * 8 + 8];
        for (size_t i = 0; i < N * 8; i++) {
            mine[i] = (char)scramble(i * 8 + (size_t)rank);
            theirs[i] = (char)scramble(i * 8 + (size_t)left);
        }
        size_t bytes = N * types[t].size;
        CUDA(cudaMemcpy(send, mine, bytes, cudaMemcpyHostToDevice));
        CUDA(cudaMemset(recv, 0, N * 8));
        NCCL(ncclGroupStart());
        NCCL(ncclSend(send, N, types[t].type, right, comm, stream));
        NCCL(ncclRecv(recv, N, types[t].type, left, comm, stream));
        NCCL(ncclGroupEnd());
        settle();
        CUDA(cudaMemcpy(got, recv, N * 8, cudaMemcpyDeviceToHost));
        expect(memcmp(got, theirs, bytes) == 0, "%s: other bytes than were sent",
               types[t].name);
        if (bytes < N * 8) {
            expect(got[bytes] == 0, "%s: more bytes than were sent", types[t].name);
        }
    }
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("send and receive, every type");
}

/* One send and its receive need no group. */
static void pairs(void) {
    int *buffer = new_ints(70001);
    for (int round = 0; round < 3; round++) {
        size_t n = round == 0 ? 1 : round == 1 ? 1000 : 70001;
        int peer = rank ^ 1;
        if (peer < nranks) {
            if ((rank + round) % 2 == 0) {
                set_message(buffer, n, rank, round);
                NCCL(ncclSend(buffer, n, ncclInt32, peer, comm, stream));
                settle();
            } else {
                set_ints(buffer, n, -1);
                NCCL(ncclRecv(buffer, n, ncclInt32, peer, comm, stream));
                settle();
                expect_message(buffer, n, peer, round, "pair");
            }
        }
    }
    CUDA(cudaFree(buffer));
    point("pairs without a group, others idle");
}

/* Ping, then pong, one after the other on one stream and without a wait between. */
static void ping_pong(void) {
    int *buffer = new_ints(10);
    set_message(buffer, 10, rank, 3);
    if (nranks > 1 && rank == 0) {
        NCCL(ncclSend(buffer, 10, ncclInt32, nranks - 1, comm, stream));
        NCCL(ncclRecv(buffer, 10, ncclInt32, nranks - 1, comm, stream));
    } else if (nranks > 1 && rank == nranks - 1) {
        int *answer = new_ints(10);
        NCCL(ncclRecv(answer, 10, ncclInt32, 0, comm, stream));
        NCCL(ncclSend(buffer, 10, ncclInt32, 0, comm, stream));
        settle();
        expect_message(answer, 10, 0, 3, "ping");
        CUDA(cudaFree(answer));
    }
    settle();
    if (nranks > 1 && rank == 0) {
        expect_message(buffer, 10, nranks - 1, 3, "pong");
    }
    CUDA(cudaFree(buffer));
    point("ping-pong queued at once");
}

static void to_oneself(void) {
    int *send = new_ints(70001), *recv = new_ints(70001);
    set_message(send, 70001, rank, 1);
    for (int order = 0; order < 2; order++) {
        set_ints(recv, 70001, -1);
        NCCL(ncclGroupStart());
        if (order == 0) {
            NCCL(ncclSend(send, 70001, ncclInt32, rank, comm, stream));
        }
        NCCL(ncclRecv(recv, 70001, ncclInt32, rank, comm, stream));
        if (order == 1) {
            NCCL(ncclSend(send, 70001, ncclInt32, rank, comm, stream));
        }
        NCCL(ncclGroupEnd());
        settle();
        expect_message(recv, 70001, rank, 1, "to oneself");
    }
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("a rank sends to itself");
}

/* Every rank sends several messages to every rank; each pair's arrive in order. */
static void many(void) {
    enum { MESSAGES = 4, MOST = 600 };
    int *send = new_ints((size_t)nranks * MESSAGES * MOST);
    int *recv = new_ints((size_t)nranks * MESSAGES * MOST);
    set_ints(recv, (size_t)nranks * MESSAGES * MOST, -1);
    for (int peer = 0; peer < nranks; peer++) {
        for (int m = 0; m < MESSAGES; m++) {
            set_message(send + ((size_t)peer * MESSAGES + (size_t)m) * MOST, MOST, rank,
                        peer * MESSAGES + m);
        }
    }
#define LENGTH(from, to, m) ((size_t)(((from)*7 + (to)*13 + (m)*101) % MOST))
    NCCL(ncclGroupStart());
    for (int m = 0; m < MESSAGES; m++) {
        for (int step = 0; step < nranks; step++) {
            int to = (rank + step) % nranks, from = (rank + nranks - step) % nranks;
            size_t to_at = ((size_t)to * MESSAGES + (size_t)m) * MOST;
            size_t from_at = ((size_t)from * MESSAGES + (size_t)m) * MOST;
            NCCL(
                ncclSend(send + to_at, LENGTH(rank, to, m), ncclInt32, to, comm, stream));
            NCCL(ncclRecv(recv + from_at, LENGTH(from, rank, m), ncclInt32, from, comm,
                          stream));
        }
    }
    NCCL(ncclGroupEnd());
    settle();
    for (int from = 0; from < nranks; from++) {
        for (int m = 0; m < MESSAGES; m++) {
            const int *message = recv + ((size_t)from * MESSAGES + (size_t)m) * MOST;
            size_t n = LENGTH(from, rank, m);
            expect_message(message, n, from, rank * MESSAGES + m, "many in one group");
            expect_ints(message + n, 1, -1, "behind a message");
        }
    }
#undef LENGTH
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    point("every rank to every rank, four messages each, uneven, in one group");
}

/* What the manual builds from sends and receives: one to all and all to one. */
static void gather_and_scatter(void) {
    enum { N = 4321 };
    int root = nranks - 1;
    int *all = new_ints((size_t)nranks * N), *mine = new_ints(N);
    set_message(mine, N, rank, 5);
    NCCL(ncclGroupStart());
    if (rank == root) {
        for (int r = 0; r < nranks; r++) {
            NCCL(ncclRecv(all + r * N, N, ncclInt32, r, comm, stream));
        }
    }
    NCCL(ncclSend(mine, N, ncclInt32, root, comm, stream));
    NCCL(ncclGroupEnd());
    settle();
    for (int r = 0; r < nranks && rank == root; r++) {
        expect_message(all + r * N, N, r, 5, "gathered");
    }
    for (int r = 0; r < nranks; r++) {
        set_message(all + r * N, N, root, r);
    }
    NCCL(ncclGroupStart());
    if (rank == root) {
        for (int r = 0; r < nranks; r++) {
            NCCL(ncclSend(all + r * N, N, ncclInt32, r, comm, stream));
        }
    }
    NCCL(ncclRecv(mine, N, ncclInt32, root, comm, stream));
    NCCL(ncclGroupEnd());
    settle();
    expect_message(mine, N, root, rank, "scattered");
    CUDA(cudaFree(all));
    CUDA(cudaFree(mine));
    point("one to all and all to one, by sends and receives");
}

static void nested_groups(void) {
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    int *send = new_ints(50), *recv = new_ints(50), *sum = new_ints(50);
    set_message(send, 50, rank, 9);
    set_ints(sum, 50, rank + 1);
    NCCL(ncclGroupStart());
    NCCL(ncclGroupStart());
    NCCL(ncclSend(send, 50, ncclInt32, right, comm, stream));
    NCCL(ncclGroupEnd()); /* nothing may wait here: the receive comes below */
    NCCL(ncclGroupStart());
    NCCL(ncclGroupStart());
    NCCL(ncclRecv(recv, 50, ncclInt32, left, comm, stream));
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupEnd());
    NCCL(ncclAllReduce(sum, sum, 50, ncclInt32, ncclSum, comm, stream));
    NCCL(ncclGroupEnd());
    settle();
    expect_message(recv, 50, left, 9, "nested groups");
    expect_ints(sum, 50, nranks * (nranks + 1) / 2, "all-reduce in a group");
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    CUDA(cudaFree(sum));
    NCCL(ncclGroupStart());
    NCCL(ncclGroupStart());
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupEnd());
    point("groups in groups, and empty ones");
}

static void collectives_in_a_group(void) {
    int *a = new_ints(1000), *b = new_ints(1000), *c = new_ints(1000);
    int *all = new_ints(1000 * (size_t)nranks);
    set_ints(a, 1000, rank);
    set_ints(b, 1000, rank * 3);
    set_message(c, 1000, rank, 4);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 1000, ncclInt32, ncclMax, comm, stream));
    NCCL(ncclAllReduce(b, b, 1000, ncclInt32, ncclSum, comm, stream));
    NCCL(ncclAllGather(c, all, 1000, ncclInt32, comm, stream));
    NCCL(ncclGroupEnd());
    settle();
    expect_ints(a, 1000, nranks - 1, "max");
    expect_ints(b, 1000, 3 * nranks * (nranks - 1) / 2, "sum");
    for (int r = 0; r < nranks; r++) {
        expect_message(all + r * 1000, 1000, r, 4, "all-gather");
    }
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
    CUDA(cudaFree(all));
    point("several collectives in one group");
}

static void several_streams(void) {
    cudaStream_t other;
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    int *a = new_ints(500), *b = new_ints(500);
    set_ints(a, 500, 1);
    set_ints(b, 500, 2);
    CUDA(cudaDeviceSynchronize()); /* `other` does not wait for the default stream */
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 500, ncclInt32, ncclSum, comm, stream));
    NCCL(ncclAllReduce(b, b, 500, ncclInt32, ncclSum, comm, other));
    NCCL(ncclGroupEnd());
    /* A group holds all its streams until all of it is done. */
    CUDA(cudaStreamSynchronize(other));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, 500, nranks, "first stream");
    expect_ints(b, 500, 2 * nranks, "second stream");
    CUDA(cudaStreamDestroy(other));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    point("one group on two streams");
}

static void several_communicators(void) {
    ncclComm_t other = world_comm();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks;
    int *a = new_ints(500), *send = new_ints(300), *recv = new_ints(300);
    set_ints(a, 500, 1);
    set_message(send, 300, rank, 2);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(send, 300, ncclInt32, right, other, stream));
    NCCL(ncclAllReduce(a, a, 500, ncclInt32, ncclSum, comm, stream));
    NCCL(ncclRecv(recv, 300, ncclInt32, left, other, stream));
    NCCL(ncclGroupEnd());
    settle();
    expect_ints(a, 500, nranks, "first communicator");
    expect_message(recv, 300, left, 2, "second communicator");
    CUDA(cudaFree(a));
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    NCCL(ncclCommDestroy(other));
    point("one group on two communicators");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreate(&stream));
    ring();
    ring_recv_first();
    into_one_buffer();
    every_type();
    pairs();
    ping_pong();
    to_oneself();
    many();
    gather_and_scatter();
    nested_groups();
    collectives_in_a_group();
    several_streams();
    several_communicators();
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
