/*
 * Every collective, with every type, every reduction, in place and out of place, with
 * counts from 0 to a MiB, against values worked out here. What every rank sends is known
 * to every rank, so each can check its own result.
 */
#include "tap.h"
#include "types.h"

enum {
    PERIOD = 1021, /* the data repeat after so many elements; a prime, so that a block
                      that lands in the wrong place shows */
    MOST_RANKS = 8,
    MOST = 262147, /* the largest count: just above 1 MiB of float */
    GUARD = 64,    /* bytes after each result that nothing may touch */
    POISON = 0xA5
};

static const char *const op_names[] = {"sum", "prod", "max", "min", "avg"};
static const size_t counts[] = {0, 1, 5, 1000};

static ncclComm_t comm;
static cudaStream_t own_stream;
static int rank, nranks;
static char *host_send, *host_recv, *device_send, *device_recv;
static size_t room; /* bytes of each of the four */

/* What rank r sends as its element k, and between which numbers the reduction must lie.
 */
static unsigned char inputs[MOST_RANKS][PERIOD * 8];
static number lowest[PERIOD], highest[PERIOD];
static uint64_t exact_bits[PERIOD]; /* integers: these bits and no others */
static size_t seed;                 /* shifts the data from one operation to the next */

static size_t phase(size_t i) {
    return (i + seed) % PERIOD;
}

/* Random bits, NaN and infinity among them, for what only moves. */
static void make_bytes(const struct type *t) {
    for (int r = 0; r < nranks; r++) {
        for (size_t k = 0; k < PERIOD; k++) {
            store_bits(t, inputs[r] + k * t->size, scramble(k * 64 + (size_t)r * 8 + 1));
        }
    }
}

static void make_integers(const struct type *t, ncclRedOp_t op) {
    int width = (int)t->size * 8;
    for (size_t k = 0; k < PERIOD; k++) {
        uint64_t bits = op == ncclProd;
        number sum = 0, best = 0;
        for (int r = 0; r < nranks; r++) {
            uint64_t any = scramble(k * 64 + (size_t)r * 8 + op * 100003u);
            if (op == ncclAvg) {
                /* small enough for the sum of eight */
                number small = (number)(any % 31);
                any = encode(t, t->negative ? small - 15 : small);
            } else if (op != ncclMax && op != ncclMin && k % 2 == 0) {
                any =
                    any % 4; /* every other element stays small; the others wrap around */
            }
            store_bits(t, inputs[r] + k * t->size, any);
            number value = load(t, inputs[r], k);
            bits = op == ncclProd ? bits * any : bits + any;
            sum += value;
            if (r == 0 || (op == ncclMax && value > best) ||
                (op == ncclMin && value < best)) {
                best = value;
            }
        }
        if (op == ncclMax || op == ncclMin) {
            bits = encode(t, best);
        } else if (op == ncclAvg) {
            bits = encode(t, truncl(sum / nranks));
        }
        exact_bits[k] = width == 64 ? bits : bits & (((uint64_t)1 << width) - 1);
    }
}

static void make_floats(const struct type *t, ncclRedOp_t op) {
    for (size_t k = 0; k < PERIOD; k++) {
        bool exact = k % 2 == 0;
        number sum = 0, magnitude = 0, product = 1, largest = 0, least = 0;
        for (int r = 0; r < nranks; r++) {
            uint64_t any = scramble(k * 64 + (size_t)r * 8 + op * 100003u);
            number value = (number)(any >> 11) / (number)((uint64_t)1 << 53); /* 0 … 1 */
            if (op == ncclProd) {
                /* near 1, so that eight of them stay in range; or powers of two */
                value = exact ? power_of_2((int)(any % 3) - 1) : 0.75L + value / 2;
                if (exact && r > 1) {
                    value = 1;
                }
                value = any & 1024 ? -value : value;
            } else if (op == ncclMax || op == ncclMin || (op == ncclSum && k % 4 == 2)) {
                /* any number that the type has; in a sum, one rank's and nothing else */
                uint64_t mask =
                    t->size == 8 ? ~(uint64_t)0 : ((uint64_t)1 << t->size * 8) - 1;
                value = decode(t, any & mask);
                if (!isfinite(value) || (op == ncclSum && (int)(k / 4) % nranks != r)) {
                    value = 0;
                }
            } else if (exact && op == ncclSum) {
                value = (number)(any % 3) - 1; /* sums that every type can hold */
            } else {
                value = value * 8 - 4;
            }
            store(t, inputs[r], k, value);
            value = load(t, inputs[r], k); /* as the type can hold it */
            sum += value;
            magnitude += fabsl(value);
            product *= value;
            largest = r == 0 || value > largest ? value : largest;
            least = r == 0 || value < least ? value : least;
        }
        number result = op == ncclSum    ? sum
                        : op == ncclProd ? product
                        : op == ncclMax  ? largest
                        : op == ncclMin  ? least
                                         : sum / nranks;
        /* Each operation rounds once. ncclAvg may also round 1/nranks and each product.
         */
        number u = rounding(t) * 1.01L;
        number allowed =
            op == ncclSum    ? (exact ? 0 : (nranks - 1) * u * magnitude)
            : op == ncclProd ? (exact ? 0 : (powl(1 + u, nranks) - 1) * fabsl(product))
            : op == ncclAvg
                ? (nranks + 2) * u * magnitude / nranks + (nranks + 1) * smallest(t)
                : 0;
        if (nranks == 1 && op != ncclAvg) {
            allowed = 0;
        }
        if (nranks == 2 && t->mantissa < 24 && (op == ncclSum || op == ncclProd)) {
            /* one operation, rounded once: there is no choice */
            result = decode(t, encode(t, result));
            allowed = 0;
        }
        lowest[k] = result - allowed;
        highest[k] = result + allowed;
    }
}

static void make_reduction(const struct type *t, ncclRedOp_t op) {
    if (t->integer) {
        make_integers(t, op);
    } else {
        make_floats(t, op);
    }
}

/* Writes `count` elements of rank r, from its element `first` on, to `to`. */
static void fill(const struct type *t, char *to, int r, size_t first, size_t count) {
    while (count > 0) {
        size_t k = phase(first);
        size_t n = PERIOD - k < count ? PERIOD - k : count;
        memcpy(to, inputs[r] + k * t->size, n * t->size);
        to += n * t->size;
        first += n;
        count -= n;
    }
}

/* What one operation is, for the messages. */
struct what {
    const char *call, *op;
    const struct type *type;
    size_t count;
    int root;
    bool in_place;
};

static bool check_moved(struct what w, const char *got, int from, size_t first,
                        size_t count) {
    size_t bytes = w.type->size;
    for (size_t i = 0; i < count;) {
        size_t k = phase(first + i);
        size_t n = PERIOD - k < count - i ? PERIOD - k : count - i;
        if (memcmp(got + i * bytes, inputs[from] + k * bytes, n * bytes) != 0) {
            while (memcmp(got + i * bytes, inputs[from] + phase(first + i) * bytes,
                          bytes) == 0) {
                i++;
            }
            return expect(false,
                          "%s, %s, count %zu, root %d, %s: element %zu of rank %d is "
                          "0x%llx, expected 0x%llx",
                          w.call, w.type->name, w.count, w.root,
                          w.in_place ? "in place" : "out of place", i, from,
                          (unsigned long long)load_bits(w.type, got + i * bytes),
                          (unsigned long long)load_bits(
                              w.type, inputs[from] + phase(first + i) * bytes));
        }
        i += n;
    }
    return true;
}

static bool check_reduced(struct what w, const char *got, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t k = phase(first + i);
        uint64_t bits = load_bits(w.type, got + i * w.type->size);
        if (w.type->integer ? bits == exact_bits[k]
                            : decode(w.type, bits) >= lowest[k] &&
                                  decode(w.type, bits) <= highest[k]) {
            continue;
        }
        number low = w.type->integer ? decode(w.type, exact_bits[k]) : lowest[k];
        number high = w.type->integer ? low : highest[k];
        return expect(false,
                      "%s, %s, %s, count %zu, root %d, %s: element %zu is %.10Lg, "
                      "expected %.10Lg … %.10Lg",
                      w.call, w.type->name, w.op, w.count, w.root,
                      w.in_place ? "in place" : "out of place", i, decode(w.type, bits),
                      low, high);
    }
    return true;
}

static void check_untouched(struct what w, const char *what, const char *bytes,
                            size_t n) {
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)bytes[i] != POISON) {
            expect(false, "%s, %s, count %zu, %s: byte %zu %s was overwritten", w.call,
                   w.type->name, w.count, w.in_place ? "in place" : "out of place", i,
                   what);
            return;
        }
    }
}

enum collective {
    BROADCAST,
    BCAST,
    ALL_REDUCE,
    REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    GATHER,
    SCATTER
};

static const char *const collective_names[] = {
    "ncclBroadcast",     "ncclBcast",    "ncclAllReduce", "ncclReduce", "ncclAllGather",
    "ncclReduceScatter", "ncclAlltoAll", "ncclGather",    "ncclScatter"};

static int operations = 0; /* so far; chooses the root, the stream and the data */

static void try(enum collective which, const struct type *t, ncclRedOp_t op, size_t count,
                bool in_place) {
    int root = operations % nranks;
    cudaStream_t stream = operations / 2 % 2 ? own_stream : 0;
    operations++;
    seed = (size_t)operations * 37 % PERIOD;

    size_t size = t->size;
    size_t block = count * size, all = block * (size_t)nranks;
    bool is_root = rank == root;
    struct what w = {collective_names[which], op_names[op], t, count, root, in_place};

    /* What this rank sends: its elements, in one block or in one for every rank. */
    bool sends_all =
        which == REDUCE_SCATTER || which == ALL_TO_ALL || (which == SCATTER && is_root);
    bool sends =
        !((which == BROADCAST || which == BCAST || which == SCATTER) && !is_root);
    /* And what it receives. */
    bool receives_all =
        which == ALL_GATHER || which == ALL_TO_ALL || (which == GATHER && is_root);
    bool receives = !((which == REDUCE || which == GATHER) && !is_root);
    size_t sent = sends_all ? all : block, received = receives_all ? all : block;
    if (!sends) {
        sent = 0;
    }
    if (!receives) {
        received = 0;
    }

    /* In place, one buffer is a part of the other. */
    bool together = in_place && (is_root || (which != GATHER && which != SCATTER));
    size_t mine = together ? (size_t)rank * block : 0;
    size_t send_at = which == ALL_GATHER || which == GATHER ? mine : 0;
    size_t recv_at = which == REDUCE_SCATTER || which == SCATTER ? mine : 0;
    size_t whole = !together || received > sent ? received : sent;
    /* Buffers need not begin where an allocation does. */
    size_t shift = (size_t)operations % 3 * size;
    char *whole_send = device_send + shift, *whole_recv = device_recv + shift;
    char *send = (together ? whole_recv : whole_send) + send_at;
    char *recv = whole_recv + recv_at;

    fill(t, host_send, rank, 0, sent / size);
    memset(host_recv, POISON, (sent > received ? sent : received) + GUARD);
    CUDA(cudaMemcpy(whole_recv, host_recv, whole + GUARD, cudaMemcpyHostToDevice));
    if (!together) {
        CUDA(cudaMemcpy(whole_send, host_recv, sent + GUARD, cudaMemcpyHostToDevice));
    }
    CUDA(cudaMemcpy(send, host_send, sent, cudaMemcpyHostToDevice));

    /* An argument that the manual calls unused may as well be null. */
    const char *send_argument = sends || together ? send : NULL;
    char *recv_argument = receives || together ? recv : NULL;
    ncclDataType_t type = t->type;
    switch (which) {
    case BROADCAST:
        NCCL(ncclBroadcast(send_argument, recv, count, type, root, comm, stream));
        break;
    case BCAST: NCCL(ncclBcast(recv, count, type, root, comm, stream)); break;
    case ALL_REDUCE:
        NCCL(ncclAllReduce(send, recv, count, type, op, comm, stream));
        break;
    case REDUCE:
        NCCL(ncclReduce(send, recv_argument, count, type, op, root, comm, stream));
        break;
    case ALL_GATHER: NCCL(ncclAllGather(send, recv, count, type, comm, stream)); break;
    case REDUCE_SCATTER:
        NCCL(ncclReduceScatter(send, recv, count, type, op, comm, stream));
        break;
    case ALL_TO_ALL: NCCL(ncclAlltoAll(send, recv, count, type, comm, stream)); break;
    case GATHER:
        NCCL(ncclGather(send, recv_argument, count, type, root, comm, stream));
        break;
    case SCATTER:
        NCCL(ncclScatter(send_argument, recv, count, type, root, comm, stream));
        break;
    }

    CUDA(cudaMemcpyAsync(host_recv, whole_recv, whole + GUARD, cudaMemcpyDeviceToHost,
                         stream));
    CUDA(cudaStreamSynchronize(stream));
    const char *got = host_recv + recv_at;

    if (receives) {
        switch (which) {
        case BROADCAST:
        case BCAST: check_moved(w, got, root, 0, count); break;
        case ALL_REDUCE:
        case REDUCE: check_reduced(w, got, 0, count); break;
        case REDUCE_SCATTER: check_reduced(w, got, (size_t)rank * count, count); break;
        case SCATTER: check_moved(w, got, root, (size_t)rank * count, count); break;
        case ALL_GATHER:
        case GATHER:
        case ALL_TO_ALL:
            for (int r = 0; r < nranks; r++) {
                size_t first = which == ALL_TO_ALL ? (size_t)rank * count : 0;
                if (!check_moved(w, got + (size_t)r * block, r, first, count)) {
                    break;
                }
            }
            break;
        }
    }
    check_untouched(w, "behind the result", host_recv + whole, GUARD);
    if (!together) {
        CUDA(cudaMemcpy(host_recv, send, sent + GUARD, cudaMemcpyDeviceToHost));
        expect(memcmp(host_recv, host_send, sent) == 0,
               "%s, %s, count %zu: changed sendbuff", w.call, t->name, count);
        check_untouched(w, "behind sendbuff", host_recv + sent, GUARD);
    }
}

/* However a sum was rounded, all ranks hold the same bits. */
static void same_everywhere(void) {
    for (int n = 0; n < TYPES; n++) {
        const struct type *t = &types[n];
        for (size_t count = 1000; count <= 70001 && !t->integer; count += 69001) {
            for (size_t i = 0; i < count; i++) {
                uint64_t any = scramble(i * 8 + (size_t)rank);
                store(t, host_send, i, (number)(any % 4001) / 1000 - 2);
            }
            CUDA(cudaMemcpy(device_send, host_send, count * t->size,
                            cudaMemcpyHostToDevice));
            NCCL(ncclAllReduce(device_send, device_recv, count, t->type, ncclSum, comm,
                               0));
            CUDA(cudaMemcpy(host_recv, device_recv, count * t->size,
                            cudaMemcpyDeviceToHost));
            uint64_t mix = 0, root_mix;
            for (size_t i = 0; i < count; i++) {
                mix = scramble(mix ^ load_bits(t, host_recv + i * t->size));
            }
            root_mix = mix;
            MPI_Bcast(&root_mix, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
            expect(mix == root_mix, "%s, count %zu: not the bits of rank 0", t->name,
                   count);
        }
    }
    point("ncclAllReduce leaves the same bits on all ranks");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    if (nranks > MOST_RANKS) {
        bail("at most %d ranks", MOST_RANKS);
    }
    CUDA(cudaStreamCreate(&own_stream));
    room = (size_t)MOST * 4 * (size_t)nranks + GUARD + 2 * 8;
    host_send = malloc(room);
    host_recv = malloc(room);
    CUDA(cudaMalloc((void **)&device_send, room));
    CUDA(cudaMalloc((void **)&device_recv, room));
    point("buffers and a communicator");

    for (enum collective which = BROADCAST; which <= SCATTER; which++) {
        bool reduces = which == ALL_REDUCE || which == REDUCE || which == REDUCE_SCATTER;
        for (int n = 0; n < TYPES; n++) {
            const struct type *t = &types[n];
            for (int op = 0; op < (reduces ? 5 : 1); op++) {
                if (reduces) {
                    make_reduction(t, (ncclRedOp_t)op);
                } else {
                    make_bytes(t);
                }
                for (int place = 0; place < 2; place++) {
                    /* Nothing is in place in ncclAlltoAll, all is in ncclBcast. */
                    if ((which == ALL_TO_ALL && place == 1) ||
                        (which == BCAST && place == 0)) {
                        continue;
                    }
                    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                        try(which, t, (ncclRedOp_t)op, counts[c], place);
                    }
                    /* Longer than any path for small messages; for most types, one
                     * reduction will do. MPI libraries have code of their own for bytes.
                     */
                    if (!reduces || op == n % 5 || t->size == 1) {
                        try(which, t, (ncclRedOp_t)op, reduces ? 70001 : 20011, place);
                    }
                }
            }
            point("%s of %s", collective_names[which], t->name);
        }
        const struct type *t = &types[7];
        if (reduces) {
            make_reduction(t, ncclSum);
        } else {
            make_bytes(t);
        }
        try(which, t, ncclSum, MOST, which == BCAST);
        try(which, t, ncclSum, 70001, which != ALL_TO_ALL);
        point("%s of 1 MiB", collective_names[which]);
    }

    same_everywhere();
    CUDA(cudaFree(device_send));
    CUDA(cudaFree(device_recv));
    CUDA(cudaStreamDestroy(own_stream));
    NCCL(ncclCommDestroy(comm));
    free(host_send);
    free(host_recv);
    point("clean-up");
    return finish();
}
