/*
 * cost.c has what an operation costs on the modelled machine, if it shares with nobody.
 */
#include "clock/machine.h"

#include "base/base.h"

#include <math.h>

struct cost clock_of_copy(enum clock_way way, size_t bytes) {
    static const struct {
        enum value start, rate;
        int uses;
    } ways[] = {[WAY_SET] = {SET_US, WITHIN_GBS, 0},
                [WAY_WITHIN] = {COPY_US, WITHIN_GBS, 0},
                [WAY_HOST] = {HOST_COPY_US, HOST_GBS, USES_HOST},
                [WAY_PEER] = {COPY_US, PEER_GBS, USES_LINK},
                [WAY_STAGED] = {COPY_US, STAGED_GBS, USES_HOST}};
    double rate = clock_value[ways[way].rate], scale = clock_value[SCALE];
    double start = clock_value[ways[way].start]; // in a row: the host takes no longer
    double share = way == WAY_PEER ? clock_value[PEER_GBS] / clock_value[LINK_GBS] : 1;
    return (struct cost){.host = fmin(clock_value[LAUNCH_US], start),
                         .latency = start,
                         .work = (double)bytes * scale * scale / rate,
                         .part = share < 1 ? share : 1,
                         .uses = ways[way].uses};
}

/* A product is computed in blocks of 128 x 128 numbers of its result. If those are fewer
 * than the multiprocessors, they are divided. It takes product_us longer then, but at
 * most half as long again. */
struct cost clock_compute(double flops, double bytes, double result) {
    double area = clock_value[SCALE] * clock_value[SCALE],
           third = result > 0 ? clock_value[SCALE] : 1;
    double a = flops * area * third / clock_value[TFLOPS];
    double b = bytes * area / clock_value[MEMORY_GBS];
    double blocks = ceil(result * area / (128 * 128));
    if (blocks < clock_value[UNITS])
        a += result > 0 ? fmin(a / 2, clock_value[PRODUCT_US]) : 0;
    while (blocks > 0 && blocks < clock_value[UNITS])
        blocks *= 2;
    return (struct cost){.host = clock_value[LAUNCH_US],
                         .latency = clock_value[LAUNCH_US],
                         .work = fmax(a, b),
                         .part = 1,
                         .blocks = a > b ? blocks : 0,
                         .uses = USES_UNITS};
}

static int *node_of; // of each process, if that is known
static int nnodes_known;

void clock_nodes(const int *nodes, int n) {
    node_of = base_grow(node_of, (size_t)n * sizeof *node_of);
    memcpy(node_of, nodes, (size_t)n * sizeof *node_of);
    nnodes_known = n;
}

bool clock_far(int world, int other) {
    int node = (int)clock_value[GPUS_PER_NODE];
    if (world < nnodes_known && other < nnodes_known)
        return node_of[world] != node_of[other];
    return node > 0 && world / node != other / node;
}

struct ranks clock_ranks(const int *world, int n) {
    struct ranks ranks = {.n = n};
    for (int i = 0; i < n; i++) {
        int before = 0, here = 0;
        for (int k = 0; k < n; k++) {
            bool same = !clock_far(world[k], world[i]);
            before += same && k < i;
            here += same;
        }
        ranks.nodes += before == 0;
        ranks.most = here > ranks.most ? here : ranks.most;
    }
    return ranks;
}

/* The bytes that a rank sends, as a part of those that the operation is called with. */
static double traffic(enum clock_op op, int n) {
    double part = (double)(n - 1) / n;
    switch (op) {
    case OP_ALL_REDUCE: return 2 * part;
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL: return part;
    default: return 1;
    }
}

static int levels(int n) { // of a tree
    int deep = 0;
    while (1 << deep < n)
        deep++;
    return deep;
}

/* How often data is passed on, one rank after the other, until the last one has it. */
static int hops(enum clock_op op, int n) {
    switch (op) {
    case OP_ALL_REDUCE: return 2 * levels(n);
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL: return n - 1;
    case OP_SEND_RECV: return 1;
    default: return levels(n);
    }
}

/* The latency is what the shortest operation takes; that is not always the smallest one.
 */
static double shortest(const struct table *table) {
    double least = table->rows[0].seconds;
    for (int i = 1; i < table->n; i++)
        if (table->rows[i].seconds < least)
            least = table->rows[i].seconds;
    return least;
}

/* Between two measured rows time is a straight line. */
static double look_up(const struct table *table, double bytes) {
    const struct row *rows = table->rows, *last = &rows[table->n - 1];
    if (bytes <= rows[0].bytes)
        return rows[0].seconds;
    if (bytes >= last->bytes)
        return last->seconds * (bytes / last->bytes);
    int i = 1;
    while (rows[i].bytes < bytes)
        i++;
    double along = (bytes - rows[i - 1].bytes) / (rows[i].bytes - rows[i - 1].bytes);
    return rows[i - 1].seconds + along * (rows[i].seconds - rows[i - 1].seconds);
}

/* On as many ranks; else on the most that are fewer, else on the fewest. One rank alone
 * uses no link and says nothing about several. */
static const struct table *nearest(enum clock_op op, bool direct, int n) {
    const struct tables *tables = &modelled.tables[direct][op];
    const struct table *best = NULL;
    for (int t = 0; t < tables->n; t++) {
        const struct table *table = &tables->all[t];
        if (table->ranks == n)
            return table;
        if (table->ranks < 2 || n < 2)
            continue;
        bool better =
            !best || (best->ranks > n ? table->ranks < best->ranks
                                      : table->ranks < n && table->ranks > best->ranks);
        best = better ? table : best;
    }
    return best;
}

/* Whether the host was what operations in a row waited for: its call takes longer than a
 * small operation on the GPU. */
static bool host_bound(const struct table *table) {
    return clock_value[GPU_US] < clock_value[NCCL_US] &&
           clock_value[GPU_US] < shortest(table) && table->ranks > 1;
}

/* What such an operation takes on the GPU. Up to the size that takes so much longer than
 * the shortest that the host can't have hidden anything, that is a straight line; `pace`
 * is what the host takes. */
static double beside_host(const struct table *table, double bytes, double *pace) {
    double gpu = clock_value[GPU_US], first = shortest(table),
           row = look_up(table, bytes);
    int i = 0;
    while (i < table->n - 1 && table->rows[i].seconds - first < first - gpu)
        i++;
    const struct row *knee = &table->rows[i];
    double line = gpu + (knee->seconds - gpu) * bytes / knee->bytes;
    bool hidden = bytes < knee->bytes && line < row;
    *pace = hidden ? row : first;
    return hidden ? line : row;
}

/* Latency, and the rest of the time, on n ranks of one node. */
static void inside(enum clock_op op, int n, int here, double bytes, double *latency,
                   double *moving, double *pace) {
    const struct table *table = nearest(op, PLAIN, n);
    bool alone = pace && table && host_bound(table);
    if (n == 1 && !table) {
        *latency = clock_value[NCCL_US];
        *moving = bytes / clock_value[WITHIN_GBS];
        return;
    }
    if (!table) {
        *latency = modelled.law_latency[op] +
                   clock_value[HOP_US] * (hops(op, here) - hops(op, 2));
        *moving = bytes * traffic(op, n) / modelled.law_bandwidth[op];
        return;
    }
    double first = alone ? clock_value[GPU_US] : shortest(table), as_there = bytes;
    *latency = first;
    if (table->ranks != n || here != n) {
        as_there = bytes * traffic(op, n) / traffic(op, table->ranks);
        *latency += clock_value[HOP_US] * (hops(op, here) - hops(op, table->ranks));
        if (*latency < clock_value[LAUNCH_US])
            *latency = clock_value[LAUNCH_US];
    }
    double slower = modelled.slower[op] > 0 ? modelled.slower[op] : 1;
    as_there *= slower;
    *moving =
        (alone ? beside_host(table, as_there, pace) : look_up(table, as_there)) - first;
}

/* The same with registered buffers, where it is less. Beyond the largest size that was
 * measured, as much is saved as at that one. */
static bool inside_direct(enum clock_op op, int n, int here, double bytes,
                          double *latency, double *moving) {
    const struct table *table = nearest(op, DIRECT, n);
    if (!table || n == 1)
        return false;
    const struct row *last = &table->rows[table->n - 1];
    double slower = modelled.slower[op] > 0 ? modelled.slower[op] : 1;
    double as_there = bytes * slower * traffic(op, n) / traffic(op, table->ranks);
    double more = clock_value[HOP_US] * (hops(op, here) - hops(op, table->ranks));
    double seconds, first = shortest(table) + (more > 0 ? more : 0);
    if (as_there > last->bytes) {
        double l, m;
        inside(op, table->ranks, table->ranks, last->bytes / slower, &l, &m, NULL);
        seconds = *latency + *moving - (l + m - last->seconds);
    } else {
        seconds = look_up(table, as_there) + (more > 0 ? more : 0);
    }
    if (seconds >= *latency + *moving)
        return false;
    *latency = first < seconds ? first : seconds;
    *moving = seconds - *latency;
    return true;
}

/* On the way between nodes: all GPUs of a node carry what goes round, each its own. */
static double outside(enum clock_op op, const struct ranks *ranks, double bytes) {
    double own = clock_value[NETWORK_GBS], all = own * ranks->most;
    double others = (double)(ranks->nodes - 1) / ranks->nodes;
    switch (op) {
    case OP_ALL_REDUCE: return 2 * others * bytes / all;
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER: return others * bytes / all;
    case OP_ALL_TO_ALL: return others * bytes / own;
    case OP_SEND_RECV:
    case OP_GATHER: return bytes / own;
    default: return bytes / all;
    }
}

/* What NCCL_ALGO and NCCL_PROTO leave of the ways, as bits; 0: all. A list, or with ^
 * what is not wanted. */
static unsigned wanted(const char *list, const char *const *names, int n) {
    unsigned bits = 0;
    char copy[256], *rest = NULL;
    bool not = list && *list == '^';
    snprintf(copy, sizeof copy, "%s", list ? list + not : "");
    for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (clock_find(name, names, n) >= 0)
            bits |= 1u << clock_find(name, names, n);
    return not ? ~bits & ((1u << n) - 1) : bits;
}

unsigned clock_ways(void) {
    unsigned of_algorithm = wanted(getenv("NCCL_ALGO"), clock_algorithms, 2), bits = 0;
    unsigned of_protocol = wanted(getenv("NCCL_PROTO"), clock_protocols, PROTOCOLS);
    if (!of_algorithm && !of_protocol)
        return 0;
    for (int w = 0; w < CLOCK_WAYS; w++)
        if ((!of_algorithm || of_algorithm & 1u << w / PROTOCOLS) &&
            (!of_protocol || of_protocol & 1u << w % PROTOCOLS))
            bits |= 1u << w;
    return bits;
}

/* What it takes longer on two ranks than the fastest way takes for next to nothing:
 * straight lines from `more` through the points, and on from the last one by the rate. */
static double along_points(const struct way *way, double bytes) {
    struct row from = {0, way->more};
    for (int i = 0; i < way->npoints; i++) {
        struct row to = way->points[i];
        if (bytes <= to.bytes)
            return from.seconds + (to.seconds - from.seconds) * (bytes - from.bytes) /
                                      (to.bytes - from.bytes);
        from = to;
    }
    return from.seconds + (bytes - from.bytes) / way->rate;
}

/* Of an all-reduce: the best of the ways that are left. A ring passes 2 (n - 1) ranks,
 * two of each node to the next one. A tree is a chain up and down in each node, and a
 * tree of the nodes. Each hop costs what the protocol costs more than LL on two ranks. */
static void by_ways(const struct ranks *ranks, double bytes, double *latency,
                    double *moving) {
    double least = 0, base, m;
    inside(OP_ALL_REDUCE, 2, 2, 0, &base, &m, NULL);
    for (int w = 0; w < CLOCK_WAYS; w++) {
        const struct way *way = &modelled.ways[w];
        if (way->at == 0 || !(ranks->ways & 1u << w))
            continue;
        int far = ranks->nodes > 1 ? 2 * ranks->nodes : 0,
            near = 2 * (ranks->n - 1) - far;
        if (w / PROTOCOLS == 1) {
            far = 2 * levels(ranks->nodes);
            near = 2 * (ranks->most - 1);
        }
        double rate = way->rate, start = base + way->more * (near + far) / 2 +
                                         clock_value[HOP_US] * (near - 2) +
                                         clock_value[NETWORK_US] * far;
        double outer = clock_value[NETWORK_GBS] * ranks->most;
        if (far > 0 && outer < rate)
            rate = outer;
        double move = bytes * traffic(OP_ALL_REDUCE, ranks->n) / rate;
        if (ranks->n == 2 && far == 0 && way->npoints > 0)
            move = along_points(way, bytes) - way->more;
        // Measured, the smallest sizes may take less than next to nothing does.
        start += fmin(move, 0);
        move = fmax(move, 0);
        if (least > 0 && start + move >= least)
            continue;
        least = start + move;
        *latency = start;
        *moving = move;
    }
}

struct cost clock_nccl(enum clock_op op, const struct ranks *ranks, double bytes,
                       int peers, bool far, bool direct) {
    double latency, moving, tail = 0, pace = 0;
    int n = ranks->n, ctas = (int)clock_value[CTAS];
    enum clock_op as = op;
    bytes *= clock_value[SCALE] * clock_value[SCALE];
    // Several sends at once are what all-to-all is; gather and scatter are sends, too.
    if (op == OP_GATHER || (op == OP_SEND_RECV && peers > 1 && n > 1)) {
        as = OP_ALL_TO_ALL;
        n = peers + 1;
        bytes = bytes * n / peers;
    }
    if (ranks->ctas > 0 && ranks->ctas < ctas)
        ctas = ranks->ctas;
    bool between = op == OP_SEND_RECV ? far : ranks->nodes > 1;
    int here = between && ranks->most < n ? ranks->most : n;
    here = here < 2 && n > 1 ? 2 : here;
    inside(as, n, here, bytes, &latency, &moving, &pace);
    bool alone = pace > 0;
    // Collectives on windows are measured in a graph, sends in a row.
    bool as_in_graph = direct && inside_direct(as, n, here, bytes, &latency, &moving) &&
                       as != OP_SEND_RECV;
    double out = n > 1 ? bytes * traffic(as, n) : 0;
    double limit = out / (ctas * clock_value[CTA_GBS]);
    moving = moving > limit ? moving : limit;
    if (between) {
        double outer = op == OP_SEND_RECV ? out / clock_value[NETWORK_GBS]
                                          : outside(as, ranks, bytes);
        latency +=
            clock_value[NETWORK_US] * (op == OP_SEND_RECV ? 1 : hops(as, ranks->nodes));
        moving = moving > outer ? moving : outer;
    }
    if (op == OP_ALL_REDUCE && ranks->ways && n > 1) {
        by_ways(ranks, bytes, &latency, &moving);
        alone = false;
    }
    if (op == OP_BROADCAST || op == OP_REDUCE)
        tail = (n - 1) *
               (moving / 3 < clock_value[TAIL_US] ? moving / 3 : clock_value[TAIL_US]);
    double part = moving > 0 ? out / moving / clock_value[LINK_GBS] : 0;
    return (struct cost){.pace = direct ? 0 : pace,
                         .latency = latency,
                         .work = moving,
                         .tail = tail,
                         .part = part < 1 ? part : 1,
                         .units = n > 1 ? ctas : 0,
                         .uses = n > 1 ? USES_LINK : 0,
                         .as_in_graph = as_in_graph || alone};
}

/* On two ranks, a group that also sends to itself is what all-to-all is; and what goes
 * only one way, beyond what goes both ways, takes as long as in a broadcast. */
struct cost clock_messages(const struct ranks *ranks, double bytes, double back,
                           int peers, bool own, bool far, bool direct) {
    if (ranks->n != 2 || peers != 1)
        return clock_nccl(OP_SEND_RECV, ranks, bytes, peers, far, direct);
    enum clock_op op = own ? OP_ALL_TO_ALL : OP_SEND_RECV;
    double all = own ? 2 : 1; // bytes of the operation, for each that goes to the other
    struct cost cost = clock_nccl(op, ranks, all * bytes, 1, far, direct);
    if (direct || bytes <= back)
        return cost;
    struct cost both = clock_nccl(op, ranks, all * back, 1, far, false);
    struct cost more = clock_nccl(OP_BROADCAST, ranks, bytes, 1, far, false);
    struct cost less = clock_nccl(OP_BROADCAST, ranks, back, 1, far, false);
    double work = both.work + more.work + more.tail - less.work - less.tail;
    if (work < cost.work) {
        cost.part = fmin(cost.part * cost.work / work, 1);
        cost.work = work;
    }
    return cost;
}

double clock_launch(int calls, enum clock_launch kind, bool direct) {
    if (kind == LAUNCH_ONE_SIDED)
        return calls * clock_value[ONE_SIDED_US];
    double first = clock_value[kind == LAUNCH_SENDS ? SEND_US : NCCL_US];
    // It is looked up what is registered.
    return first + (direct ? clock_value[WINDOW_US] - clock_value[NCCL_US] : 0) +
           (calls - 1) * clock_value[NCCL_MORE_US];
}

double clock_graph(void) {
    return clock_value[GRAPH_US];
}

/* As much less as an all-reduce on two ranks takes less in a graph. */
void clock_recorded(struct cost *cost) {
    double latency, moving;
    inside(OP_ALL_REDUCE, 2, 2, 0, &latency, &moving, NULL);
    if (!cost->as_in_graph && latency > clock_value[GPU_US])
        cost->latency = fmax(cost->latency - (latency - clock_value[GPU_US]), 0);
}

int clock_units(void) {
    return (int)clock_value[UNITS];
}

double clock_event(void) {
    return clock_value[EVENT_US];
}

void clock_add(struct cost *group, const struct cost *call) {
    double work = group->work + call->work;
    if (work > 0)
        group->part = (group->part * group->work + call->part * call->work) / work;
    group->work = work;
    group->uses |= call->uses;
    group->as_in_graph |= call->as_in_graph;
    if (call->pace > group->pace)
        group->pace = call->pace;
    if (call->latency > group->latency)
        group->latency = call->latency;
    if (call->tail > group->tail)
        group->tail = call->tail;
    if (call->units > group->units)
        group->units = call->units;
}

double clock_mpi(int nranks) {
    return clock_value[MPI_US] * (nranks > 1 ? levels(nranks) : 0);
}
