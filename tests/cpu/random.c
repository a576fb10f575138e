/*
 * Programs that nobody would write by hand: random operations of every kind and size, on
 * several communicators and streams, in groups and alone, waited for or not. Each
 * operation has buffers of its own, so every such program is correct.
 *
 *     random                  many programs, their results checked
 *     random SEED MISTAKE     one, in which one rank makes a mistake; ends with a report
 */
#include "chance.h"
#include "ints.h"

enum kind {
    ALL_REDUCE,
    BROADCAST,
    REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    SEND_RECV,
    KINDS
};
enum { WORLD, REVERSED, HALVES, COMMS = 3, STREAMS = 3, MOST_OPS = 40 };
enum mistake { NONE, LEFT_OUT, OTHER_COUNT, OTHER_ROOT, OTHER_KIND, OTHER_COMM };

struct operation {
    enum kind kind;
    int comm, stream, root;
    size_t count;
    bool in_place, opens, closes; // a group begins before it, ends after it
    bool wait, barrier, left_out;
    int *send, *recv;
};

static ncclComm_t comms[COMMS];
static cudaStream_t streams[STREAMS];
static struct operation ops[MOST_OPS];
static int nops;

static void make_program(int number) {
    begin_chance(number);
    bool open = false, groups = below(2), large = below(2);
    nops = 5 + below(MOST_OPS - 5);
    for (int k = 0; k < nops; k++) {
        struct operation *op = &ops[k];
        memset(op, 0, sizeof *op);
        op->kind = below(KINDS);
        op->comm = below(COMMS);
        op->stream = below(STREAMS);
        op->root = below(100);
        op->count = (size_t)(large && below(2) ? 300 + below(20000) : below(12));
        op->in_place = op->kind <= REDUCE && below(2);
        op->opens = groups && !open && below(3) == 0;
        open |= op->opens;
        op->closes = open && (k == nops - 1 || below(2));
        open &= !op->closes;
        op->wait = !open && below(4) == 0;
        op->barrier = !open && below(8) == 0;
    }
}

/* On one rank, in one operation of a communicator that has others. */
static void make_mistake(enum mistake mistake) {
    int k = below(nops), wrong = below(tap_ranks);
    struct operation *op = &ops[k];
    if (op->comm == HALVES) {
        op->comm = WORLD;
    }
    if (mistake == OTHER_ROOT) {
        op->kind = BROADCAST + below(2);
    } else if (mistake == OTHER_KIND) {
        op->kind = below(ALL_TO_ALL);
    }
    op->in_place = false;
    if (tap_rank != wrong) {
        return;
    }
    op->left_out = mistake == LEFT_OUT;
    op->count += mistake == OTHER_COUNT;
    op->root += mistake == OTHER_ROOT;
    if (mistake == OTHER_KIND) {
        op->kind = (op->kind + 1) % ALL_TO_ALL;
    } else if (mistake == OTHER_COMM) {
        op->comm = op->comm == WORLD ? REVERSED : WORLD;
    }
}

static void place(const struct operation *op, int *me, int *n) {
    ncclCommUserRank(comms[op->comm], me);
    ncclCommCount(comms[op->comm], n);
}

static void call(const struct operation *op, int me, int n) {
    int *send = op->send, *recv = op->recv, root = op->root % n;
    size_t count = op->count;
    ncclComm_t comm = comms[op->comm];
    cudaStream_t stream = streams[op->stream];
    switch (op->kind) {
    case ALL_REDUCE:
        NCCL(ncclAllReduce(send, recv, count, ncclInt32, ncclSum, comm, stream));
        break;
    case BROADCAST:
        NCCL(ncclBroadcast(send, recv, count, ncclInt32, root, comm, stream));
        break;
    case REDUCE:
        NCCL(ncclReduce(send, recv, count, ncclInt32, ncclMax, root, comm, stream));
        break;
    case ALL_GATHER:
        NCCL(ncclAllGather(send, recv, count, ncclInt32, comm, stream));
        break;
    case REDUCE_SCATTER:
        NCCL(ncclReduceScatter(send, recv, count, ncclInt32, ncclSum, comm, stream));
        break;
    case ALL_TO_ALL:
        NCCL(ncclAlltoAll(send, recv, count, ncclInt32, comm, stream));
        break;
    default:
        NCCL(ncclGroupStart());
        NCCL(ncclSend(send, count, ncclInt32, (me + 1) % n, comm, stream));
        NCCL(ncclRecv(recv, count, ncclInt32, (me + n - 1) % n, comm, stream));
        NCCL(ncclGroupEnd());
    }
}

static void queue(struct operation *op, int tag) {
    int me, n;
    place(op, &me, &n);
    size_t room = op->count * (size_t)n;
    op->send = new_ints(room);
    op->recv = op->in_place ? op->send : new_ints(room);
    set_message(op->send, room, me, tag);
    if (op->opens) {
        NCCL(ncclGroupStart());
    }
    if (!op->left_out) {
        call(op, me, n);
    }
    if (op->closes) {
        NCCL(ncclGroupEnd());
    }
    if (op->wait) {
        CUDA(cudaStreamSynchronize(streams[op->stream]));
    }
    if (op->barrier) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* What element i of block p of the result must be. */
static int expected(const struct operation *op, int tag, int p, size_t i) {
    int me, n, sum = 0;
    place(op, &me, &n);
    switch (op->kind) {
    case BROADCAST: return value_of(op->root % n, tag, i);
    case REDUCE: return value_of(n - 1, tag, i);
    case ALL_GATHER: return value_of(p, tag, i);
    case ALL_TO_ALL: return value_of(p, tag, (size_t)me * op->count + i);
    case SEND_RECV: return value_of((me + n - 1) % n, tag, i);
    default: break;
    }
    for (int r = 0; r < n; r++) {
        sum += value_of(r, tag, op->kind == ALL_REDUCE ? i : (size_t)me * op->count + i);
    }
    return sum;
}

static void check(struct operation *op, int tag) {
    int me, n;
    place(op, &me, &n);
    bool blocks = op->kind == ALL_GATHER || op->kind == ALL_TO_ALL;
    size_t all = op->count * (size_t)(blocks ? n : 1);
    int *host = malloc((all + 1) * sizeof(int));
    CUDA(cudaMemcpy(host, op->recv, all * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = op->left_out || (op->kind == REDUCE && me != op->root % n);
    for (size_t i = 0; i < all && !right; i++) {
        int want = expected(op, tag, (int)(i / op->count), i % op->count);
        if (!expect(host[i] == want, "operation %d, kind %d, element %zu: %d, not %d",
                    tag, op->kind, i, host[i], want)) {
            break;
        }
    }
    free(host);
    CUDA(cudaFree(op->send));
    if (!op->in_place) {
        CUDA(cudaFree(op->recv));
    }
}

static void run_program(void) {
    for (int k = 0; k < nops; k++) {
        queue(&ops[k], k);
    }
    CUDA(cudaDeviceSynchronize());
    for (int k = 0; k < nops; k++) {
        check(&ops[k], k);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comms[WORLD] = world_comm();
    NCCL(ncclCommSplit(comms[WORLD], 0, -tap_rank, &comms[REVERSED], NULL));
    NCCL(ncclCommSplit(comms[WORLD], tap_rank % 2, tap_rank, &comms[HALVES], NULL));
    for (int s = 0; s < STREAMS; s++) {
        CUDA(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    }
    if (argc == 3) {
        make_program(atoi(argv[1]));
        make_mistake(atoi(argv[2]));
        run_program();
        point("program %s with mistake %s", argv[1], argv[2]);
    } else {
        const int most = getenv("ALL") ? 60 : 30;
        for (int first = 0; first < most; first += 10) {
            for (int number = first; number < first + 10; number++) {
                make_program(number);
                run_program();
            }
            point("random programs %d to %d", first, first + 9);
        }
    }
    for (int s = 0; s < STREAMS; s++) {
        CUDA(cudaStreamDestroy(streams[s]));
    }
    for (int c = 0; c < COMMS; c++) {
        NCCL(ncclCommDestroy(comms[c]));
    }
    return finish();
}
