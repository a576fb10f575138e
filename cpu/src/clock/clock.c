/*
 * clock.c has the modelled clock: how long everything takes on a machine that is not
 * here. The queue asks it when an operation starts and how long it takes; the data is
 * moved all the same.
 *
 * The same digits on every run: a modelled time depends on what the program did, in its
 * order, and on the times that other ranks tell. It never depends on when something
 * really happened. So
 *   - the host's time passes in calls only: each costs what the machine says, and a wait
 *     brings it to the end of what it waited for;
 *   - an operation starts when its stream, the events before it, its call and the last of
 *     its ranks are there;
 *   - operations of one GPU that use the same thing at the same time share it. Whether a
 *     later one will come is not known when an earlier one ends. So what was called first
 *     goes first, and a later one gets what is left: together they take as long as they
 *     would if they shared fairly, and the last one ends then;
 *   - likewise a product does without the multiprocessors that NCCL has, if NCCL was
 *     called before it.
 */
#define _GNU_SOURCE
#include "clock/clock.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

bool clock_on;

/* --- The machine ------------------------------------------------------------------ */

static const char *const op_names[CLOCK_OPS] = {
    "broadcast",      "reduce",     "all_reduce", "all_gather",
    "reduce_scatter", "all_to_all", "send_recv",  "gather"};

enum { MOST_POINTS = 16 };

struct row { // measured
    double bytes, seconds;
};

struct table { // of one operation on so many ranks, the smallest size first
    int ranks, n;
    struct row *rows;
};

static struct {
    char name[64];
    struct tables {
        struct table *all;
        int n;
    } tables[2][CLOCK_OPS]; // of plain buffers; of registered ones (see `direct`)
    double law_latency[CLOCK_OPS], law_bandwidth[CLOCK_OPS];
    bool has_law[CLOCK_OPS];
    double slower[CLOCK_OPS]; // so many times the bytes take as long there; 0: not given
    int times_at[CLOCK_OPS], slower_at[CLOCK_OPS]; // see depth; 0: not given
    struct way {                        // that an all-reduce can go: see `enum way`
        int at;                         // see depth; 0: not given
        double more, rate;              // than NCCL's own way, in latency; bytes a second
        struct row points[MOST_POINTS]; // measured on two ranks: seconds more
        int npoints;
    } ways[CLOCK_WAYS];
} machine;

static const char *const algorithms[] = {"Ring", "Tree"};
static const char *const protocols[] = {"LL", "LL128", "Simple"};
enum { PLAIN, DIRECT, PROTOCOLS = CLOCK_WAYS / 2 };

enum value {
    GPUS_PER_NODE,
    LAUNCH_US,
    NCCL_US,
    NCCL_MORE_US,
    SEND_US,
    WINDOW_US,
    ONE_SIDED_US,
    GRAPH_US,
    GPU_US,
    EVENT_US,
    WAIT_US,
    ASK_US,
    MPI_US,
    COPY_US,
    HOST_COPY_US,
    SET_US,
    WITHIN_GBS,
    HOST_GBS,
    PEER_GBS,
    STAGED_GBS,
    MEMORY_GBS,
    TFLOPS,
    PRODUCT_US,
    UNITS,
    CTAS,
    CTA_GBS,
    LINK_GBS,
    HOP_US,
    TAIL_US,
    NETWORK_US,
    NETWORK_GBS,
    SCALE, // may be left out: 1
    VALUES
};

static const struct {
    const char *name;
    double scale; // to seconds, bytes per second, …
} known[VALUES] = {
    [GPUS_PER_NODE] = {"gpus_per_node", 1},
    [LAUNCH_US] = {"launch_us", 1e-6},
    [NCCL_US] = {"nccl_us", 1e-6},
    [NCCL_MORE_US] = {"nccl_more_us", 1e-6},
    [SEND_US] = {"send_us", 1e-6},
    [WINDOW_US] = {"window_us", 1e-6},
    [ONE_SIDED_US] = {"one_sided_us", 1e-6},
    [GRAPH_US] = {"graph_us", 1e-6},
    [GPU_US] = {"gpu_us", 1e-6},
    [EVENT_US] = {"event_us", 1e-6},
    [WAIT_US] = {"wait_us", 1e-6},
    [ASK_US] = {"ask_us", 1e-6},
    [MPI_US] = {"mpi_us", 1e-6},
    [COPY_US] = {"copy_us", 1e-6},
    [HOST_COPY_US] = {"host_copy_us", 1e-6},
    [SET_US] = {"set_us", 1e-6},
    [WITHIN_GBS] = {"copy_within_GBs", 1e9},
    [HOST_GBS] = {"copy_host_GBs", 1e9},
    [PEER_GBS] = {"copy_peer_GBs", 1e9},
    [STAGED_GBS] = {"copy_staged_GBs", 1e9},
    [MEMORY_GBS] = {"memory_GBs", 1e9},
    [TFLOPS] = {"float32_TFLOPS", 1e12},
    [PRODUCT_US] = {"product_us", 1e-6},
    [UNITS] = {"multiprocessors", 1},
    [CTAS] = {"nccl_ctas", 1},
    [CTA_GBS] = {"nccl_cta_GBs", 1e9},
    [LINK_GBS] = {"link_GBs", 1e9},
    [HOP_US] = {"hop_us", 1e-6},
    [TAIL_US] = {"tail_us", 1e-6},
    [NETWORK_US] = {"network_us", 1e-6},
    [NETWORK_GBS] = {"network_GBs", 1e9},
    [SCALE] = {"scale", 1},
};
static double value[VALUES];
static int given_at[VALUES]; // see depth; 0: not given

const char *clock_machine(void) {
    return machine.name;
}

static bool says; // what is wrong

__attribute__((format(printf, 1, 2))) static _Noreturn void wrong(const char *format,
                                                                  ...) {
    va_list arguments;
    va_start(arguments, format);
    if (says) {
        fprintf(stderr, "CPU build: NCCL_CPU_CLOCK: ");
        vfprintf(stderr, format, arguments);
        fprintf(stderr, "\n");
    }
    va_end(arguments);
    _exit(2);
}

static FILE *opened(const char *path, const char *what) {
    FILE *in = fopen(path, "r");
    if (!in)
        wrong("%s%s: %s", what, path, strerror(errno));
    return in;
}

static int op_of(const char *name) {
    for (int op = 0; op < CLOCK_OPS; op++)
        if (strcmp(name, op_names[op]) == 0)
            return op;
    return -1;
}

/* How many `as` lead to the file that is read, and the same of what is known: what a file
 * says itself is worth more than what it takes over. */
static int depth;

static void forget_tables(int op) {
    for (int direct = 0; direct < 2; direct++) {
        struct tables *tables = &machine.tables[direct][op];
        for (int t = 0; t < tables->n; t++)
            free(tables->all[t].rows);
        free(tables->all);
        *tables = (struct tables){0};
    }
}

/* Whether this file's times of an operation count. They replace all that another file, of
 * which it takes over the rest, says of that operation. */
static bool counts(int op) {
    if (machine.times_at[op] != 0 && machine.times_at[op] < depth)
        return false;
    if (machine.times_at[op] > depth) {
        forget_tables(op);
        machine.has_law[op] = false;
        if (machine.slower_at[op] > depth)
            machine.slower[op] = 0;
    }
    machine.times_at[op] = depth;
    return true;
}

static void add_row(int op, bool direct, int ranks, double bytes, double us) {
    int t = 0;
    if (!counts(op))
        return;
    struct tables *tables = &machine.tables[direct][op];
    while (t < tables->n && tables->all[t].ranks != ranks)
        t++;
    if (t == tables->n) {
        tables->all = must_grow(tables->all, (size_t)(t + 1) * sizeof(struct table));
        tables->all[t] = (struct table){.ranks = ranks};
        tables->n++;
    }
    struct table *table = &tables->all[t];
    int at = table->n;
    while (at > 0 && table->rows[at - 1].bytes >= bytes)
        at--;
    if (at < table->n && table->rows[at].bytes == bytes) {
        // The first one counts. Of registered buffers, what the host's pace does not
        // hide.
        if (direct && us * 1e-6 < table->rows[at].seconds)
            table->rows[at].seconds = us * 1e-6;
        return;
    }
    table->rows = must_grow(table->rows, (size_t)(table->n + 1) * sizeof(struct row));
    memmove(table->rows + at + 1, table->rows + at,
            (size_t)(table->n - at) * sizeof(struct row));
    table->rows[at] = (struct row){bytes, us * 1e-6};
    table->n++;
}

static bool is_row(int ranks, double bytes, double us) {
    return ranks > 0 && bytes >= 0 && isfinite(bytes) && us > 0 && isfinite(us);
}

/* What `bandwidth --csv` of lesson 06 wrote. */
static void read_csv(const char *path, const char *where) {
    char line[256], name[32], mode[32];
    int ranks, rows = 0;
    double bytes, us;
    FILE *in = opened(path, where);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "%31[^,],%31[^,],%d,%lf,%lf", name, mode, &ranks, &bytes, &us) !=
                5 ||
            op_of(name) < 0 || !is_row(ranks, bytes, us))
            continue;
        rows++;
        if (strcmp(mode, "graph") != 0) // see gpu_us
            add_row(op_of(name), strcmp(mode, "plain") != 0, ranks, bytes, us);
    }
    fclose(in);
    if (rows == 0)
        wrong("%s%s has no rows of bandwidth --csv", where, path);
}

static void read_machine(const char *path, const char *where);

static int find(const char *name, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* `way Ring LL128 2.5 258 32768:5.8 524288:7.1` */
static bool read_way(const char *line) {
    char algorithm[32], protocol[32];
    struct way new = {.at = depth};
    int a, p, end = 0;
    if (sscanf(line, "%*s %31s %31s %lf %lf %n", algorithm, protocol, &new.more,
               &new.rate, &end) != 4 ||
        (a = find(algorithm, algorithms, 2)) < 0 ||
        (p = find(protocol, protocols, PROTOCOLS)) < 0 || !(new.more >= 0) ||
        !(new.rate > 0) || !isfinite(new.more) || !isfinite(new.rate))
        return false;
    new.more *= 1e-6;
    new.rate *= 1e9;
    for (line += end; *line; line += end) {
        double bytes, us, last = new.npoints ? new.points[new.npoints - 1].bytes : 0;
        if (new.npoints == MOST_POINTS ||
            sscanf(line, "%lf:%lf %n", &bytes, &us, &end) != 2 || !(bytes > last) ||
            !isfinite(bytes) || !(us >= 0) || !isfinite(us))
            return false;
        new.points[new.npoints++] = (struct row){bytes, us * 1e-6};
    }
    struct way *way = &machine.ways[a * PROTOCOLS + p];
    if (way->at == 0 || way->at >= depth)
        *way = new;
    return true;
}

/* False: it is none of a machine's. */
static bool read_line(const char *path, const char *where, const char *line) {
    char first[64], second[PATH_MAX], file[2 * PATH_MAX];
    int ranks, op, end = 0;
    double x, y;
    if (sscanf(line, "%63s", first) != 1)
        return true;
    bool as = strcmp(first, "as") == 0;
    if (as || strcmp(first, "measured") == 0) {
        if (sscanf(line, "%*s %4095s %n", second, &end) != 1 || line[end])
            return false;
        const char *slash = strrchr(path, '/');
        int folder = slash && second[0] != '/' ? (int)(slash - path) + 1 : 0;
        snprintf(file, sizeof file, "%.*s%s", folder, path, second);
        // A copy of a machine lies elsewhere, and still names the files of the original.
        if (second[0] != '/' && access(file, R_OK) != 0)
            snprintf(file, sizeof file, "%s/%s", machines_folder(), second);
        if (as)
            read_machine(file, where);
        else
            read_csv(file, where);
        return true;
    }
    if (strcmp(first, "time") == 0 || strcmp(first, "direct") == 0) {
        if (sscanf(line, "%*s %63s %d %lf %lf %n", second, &ranks, &x, &y, &end) != 4 ||
            line[end] || (op = op_of(second)) < 0 || !is_row(ranks, x, y))
            return false;
        add_row(op, strcmp(first, "direct") == 0, ranks, x, y);
        return true;
    }
    if (strcmp(first, "way") == 0)
        return read_way(line);
    if (strcmp(first, "law") == 0) {
        if (sscanf(line, "%*s %63s %lf %lf %n", second, &x, &y, &end) != 3 || line[end] ||
            (op = op_of(second)) < 0 || !is_row(1, x, y))
            return false;
        if (counts(op)) {
            machine.has_law[op] = true;
            machine.law_latency[op] = x * 1e-6;
            machine.law_bandwidth[op] = y * 1e9;
        }
        return true;
    }
    if (strcmp(first, "slower") == 0) {
        if (sscanf(line, "%*s %63s %lf %n", second, &x, &end) != 2 || line[end] ||
            (op = op_of(second)) < 0 || !is_row(1, 0, x))
            return false;
        bool better = machine.slower[op] == 0 || machine.slower_at[op] >= depth;
        if (better && (machine.times_at[op] == 0 || machine.times_at[op] >= depth)) {
            machine.slower[op] = x;
            machine.slower_at[op] = depth;
        }
        return true;
    }
    for (int v = 0; v < VALUES; v++)
        if (strcmp(first, known[v].name) == 0) {
            // A time may be nothing; of all else there is some.
            if (sscanf(line, "%*s %lf %n", &x, &end) != 1 || line[end] || !isfinite(x) ||
                x < 0 || (x == 0 && known[v].scale != 1e-6))
                return false;
            if (given_at[v] == 0 || given_at[v] >= depth) {
                value[v] = x * known[v].scale;
                given_at[v] = depth;
            }
            return true;
        }
    return false;
}

static void read_machine(const char *path, const char *where) {
    char line[PATH_MAX + 128], here[2 * PATH_MAX + 64];
    if (++depth > 8)
        wrong("%s is as itself", path);
    FILE *in = opened(path, where);
    errno = 0;
    for (int number = 1; fgets(line, sizeof line, in); number++) {
        line[strcspn(line, "#\r\n")] = '\0';
        snprintf(here, sizeof here, "%s:%d: ", path, number);
        if (!read_line(path, here, line))
            wrong("%snot a line of a machine: %s", here, line);
    }
    if (ferror(in))
        wrong("%s%s: %s", where, path, strerror(errno));
    fclose(in);
    depth--;
}

static void forget_machine(void) {
    for (int op = 0; op < CLOCK_OPS; op++)
        forget_tables(op);
    memset(&machine, 0, sizeof machine);
    memset(given_at, 0, sizeof given_at);
    value[SCALE] = 1;
    clock_on = false;
}

static int is_machine(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".conf") == 0;
}

static _Noreturn void no_machine(const char *asked) {
    char all[1024] = "none";
    struct dirent **found;
    int n = scandir(machines_folder(), &found, is_machine, alphasort);
    for (int i = 0; i < n; i++) {
        size_t there = i > 0 ? strlen(all) : 0;
        snprintf(all + there, sizeof all - there, "%s%.*s", i > 0 ? ", " : "",
                 (int)strlen(found[i]->d_name) - 5, found[i]->d_name);
    }
    wrong("no machine %s; there are %s, and a file of your own needs a slash: ./%s",
          asked, all, asked);
}

void clock_start(const char *asked, bool speaks) {
    char path[PATH_MAX];
    forget_machine();
    if (!*asked)
        return;
    says = speaks;
    // A name is that of a file of the CPU build; with a slash it is the user's own.
    if (strchr(asked, '/'))
        snprintf(path, sizeof path, "%s", asked);
    else
        snprintf(path, sizeof path, "%s/%s.conf", machines_folder(), asked);
    if (!strchr(asked, '/') && access(path, R_OK) != 0)
        no_machine(asked);
    read_machine(path, "");
    for (int v = 0; v < VALUES; v++)
        if (given_at[v] == 0 && v != SCALE)
            wrong("%s does not give %s", path, known[v].name);
    for (int op = 0; op < OP_GATHER; op++)
        if (machine.tables[PLAIN][op].n == 0 && !machine.has_law[op])
            wrong("%s does not say how long %s takes", path, op_names[op]);
    const char *slash = strrchr(asked, '/'), *base = slash ? slash + 1 : asked;
    const char *dot = strrchr(base, '.');
    int length =
        (int)(dot && strcmp(dot, ".conf") == 0 ? (size_t)(dot - base) : strlen(base));
    snprintf(machine.name, sizeof machine.name, "%.*s", length, base);
    clock_on = true;
}

/* --- What an operation costs ------------------------------------------------------ */

struct cost clock_copy(enum clock_way way, size_t bytes) {
    static const struct {
        enum value start, rate;
        int uses;
    } ways[] = {[WAY_SET] = {SET_US, WITHIN_GBS, 0},
                [WAY_WITHIN] = {COPY_US, WITHIN_GBS, 0},
                [WAY_HOST] = {HOST_COPY_US, HOST_GBS, USES_HOST},
                [WAY_PEER] = {COPY_US, PEER_GBS, USES_LINK},
                [WAY_STAGED] = {COPY_US, STAGED_GBS, USES_HOST}};
    double rate = value[ways[way].rate], scale = value[SCALE];
    double start = value[ways[way].start]; // in a row: the host takes no longer
    double share = way == WAY_PEER ? value[PEER_GBS] / value[LINK_GBS] : 1;
    return (struct cost){.host = fmin(value[LAUNCH_US], start),
                         .latency = start,
                         .work = (double)bytes * scale * scale / rate,
                         .part = share < 1 ? share : 1,
                         .uses = ways[way].uses};
}

/* A product is computed in blocks of 128 x 128 numbers of its result. If those are fewer
 * than the multiprocessors, they are divided. It takes product_us longer then, but at
 * most half as long again. */
struct cost clock_compute(double flops, double bytes, double result) {
    double area = value[SCALE] * value[SCALE], third = result > 0 ? value[SCALE] : 1;
    double a = flops * area * third / value[TFLOPS];
    double b = bytes * area / value[MEMORY_GBS];
    double blocks = ceil(result * area / (128 * 128));
    if (blocks < value[UNITS])
        a += result > 0 ? fmin(a / 2, value[PRODUCT_US]) : 0;
    while (blocks > 0 && blocks < value[UNITS])
        blocks *= 2;
    return (struct cost){.host = value[LAUNCH_US],
                         .latency = value[LAUNCH_US],
                         .work = fmax(a, b),
                         .part = 1,
                         .blocks = a > b ? blocks : 0,
                         .uses = USES_UNITS};
}

static int *node_of; // of each process, if that is known
static int nnodes_known;

void clock_nodes(const int *nodes, int n) {
    node_of = must_grow(node_of, (size_t)n * sizeof *node_of);
    memcpy(node_of, nodes, (size_t)n * sizeof *node_of);
    nnodes_known = n;
}

bool clock_far(int world, int other) {
    int node = (int)value[GPUS_PER_NODE];
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
    const struct tables *tables = &machine.tables[direct][op];
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
    return value[GPU_US] < value[NCCL_US] && value[GPU_US] < shortest(table) &&
           table->ranks > 1;
}

/* What such an operation takes on the GPU. Up to the size that takes so much longer than
 * the shortest that the host can't have hidden anything, that is a straight line; `pace`
 * is what the host takes. */
static double beside_host(const struct table *table, double bytes, double *pace) {
    double gpu = value[GPU_US], first = shortest(table), row = look_up(table, bytes);
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
        *latency = value[NCCL_US];
        *moving = bytes / value[WITHIN_GBS];
        return;
    }
    if (!table) {
        *latency =
            machine.law_latency[op] + value[HOP_US] * (hops(op, here) - hops(op, 2));
        *moving = bytes * traffic(op, n) / machine.law_bandwidth[op];
        return;
    }
    double first = alone ? value[GPU_US] : shortest(table), as_there = bytes;
    *latency = first;
    if (table->ranks != n || here != n) {
        as_there = bytes * traffic(op, n) / traffic(op, table->ranks);
        *latency += value[HOP_US] * (hops(op, here) - hops(op, table->ranks));
        if (*latency < value[LAUNCH_US])
            *latency = value[LAUNCH_US];
    }
    double slower = machine.slower[op] > 0 ? machine.slower[op] : 1;
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
    double slower = machine.slower[op] > 0 ? machine.slower[op] : 1;
    double as_there = bytes * slower * traffic(op, n) / traffic(op, table->ranks);
    double more = value[HOP_US] * (hops(op, here) - hops(op, table->ranks));
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
    double own = value[NETWORK_GBS], all = own * ranks->most;
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
        if (find(name, names, n) >= 0)
            bits |= 1u << find(name, names, n);
    return not ? ~bits & ((1u << n) - 1) : bits;
}

unsigned clock_ways(void) {
    unsigned of_algorithm = wanted(getenv("NCCL_ALGO"), algorithms, 2), bits = 0;
    unsigned of_protocol = wanted(getenv("NCCL_PROTO"), protocols, PROTOCOLS);
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
        const struct way *way = &machine.ways[w];
        if (way->at == 0 || !(ranks->ways & 1u << w))
            continue;
        int far = ranks->nodes > 1 ? 2 * ranks->nodes : 0,
            near = 2 * (ranks->n - 1) - far;
        if (w / PROTOCOLS == 1) {
            far = 2 * levels(ranks->nodes);
            near = 2 * (ranks->most - 1);
        }
        double rate = way->rate, start = base + way->more * (near + far) / 2 +
                                         value[HOP_US] * (near - 2) +
                                         value[NETWORK_US] * far;
        double outer = value[NETWORK_GBS] * ranks->most;
        if (far > 0 && outer < rate)
            rate = outer;
        double move = bytes * traffic(OP_ALL_REDUCE, ranks->n) / rate;
        if (ranks->n == 2 && way->npoints > 0)
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
    int n = ranks->n, ctas = (int)value[CTAS];
    enum clock_op as = op;
    bytes *= value[SCALE] * value[SCALE];
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
    double limit = out / (ctas * value[CTA_GBS]);
    moving = moving > limit ? moving : limit;
    if (between) {
        double outer =
            op == OP_SEND_RECV ? out / value[NETWORK_GBS] : outside(as, ranks, bytes);
        latency += value[NETWORK_US] * (op == OP_SEND_RECV ? 1 : hops(as, ranks->nodes));
        moving = moving > outer ? moving : outer;
    }
    if (op == OP_ALL_REDUCE && ranks->ways && n > 1) {
        by_ways(ranks, bytes, &latency, &moving);
        alone = false;
    }
    if (op == OP_BROADCAST || op == OP_REDUCE)
        tail = (n - 1) * (moving / 3 < value[TAIL_US] ? moving / 3 : value[TAIL_US]);
    double part = moving > 0 ? out / moving / value[LINK_GBS] : 0;
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
        return calls * value[ONE_SIDED_US];
    double first = value[kind == LAUNCH_SENDS ? SEND_US : NCCL_US];
    // It is looked up what is registered.
    return first + (direct ? value[WINDOW_US] - value[NCCL_US] : 0) +
           (calls - 1) * value[NCCL_MORE_US];
}

double clock_graph(void) {
    return value[GRAPH_US];
}

/* As much less as an all-reduce on two ranks takes less in a graph. */
void clock_recorded(struct cost *cost) {
    double latency, moving;
    inside(OP_ALL_REDUCE, 2, 2, 0, &latency, &moving, NULL);
    if (!cost->as_in_graph && latency > value[GPU_US])
        cost->latency = fmax(cost->latency - (latency - value[GPU_US]), 0);
}

int clock_units(void) {
    return (int)value[UNITS];
}

double clock_event(void) {
    return value[EVENT_US];
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

/* --- The host --------------------------------------------------------------------- */

static double host_time, watched; // watched: by MPI_Wtime, and nothing else since then

double clock_host(void) {
    return host_time;
}

void clock_host_until(double time) {
    watched = 0;
    if (time > host_time)
        host_time = time + value[WAIT_US];
}

void clock_host_spends(double seconds) {
    watched = 0;
    host_time += seconds;
}

/* A host that asks again and again until it is so gets there in steps of the same length,
 * however often it really asks. */
void clock_host_polls(double end) {
    watched = 0;
    if (end > host_time)
        host_time += value[ASK_US];
}

/* A program may do nothing but look at the clock until so much time has passed. That
 * time passes, and in reality, too. */
double clock_wtime(void) {
    double step = watched / 8 > 20e-9 ? watched / 8 : 20e-9;
    if (step > 1e-3)
        step = 1e-3;
    watched += step;
    host_time += step;
    if (step > 50e-6)
        nanosleep(&(struct timespec){0, (long)(step * 1e9)}, NULL);
    return host_time;
}

double clock_mpi(int nranks) {
    return value[MPI_US] * (nranks > 1 ? levels(nranks) : 0);
}

/* --- Operations that share -------------------------------------------------------- */

/* How much of something is used, as a part of all: from `at` to the next span's. */
struct span {
    double at, used;
};

struct turn { // the newest operation of a stream that used it
    int stream;
    double start, end;
};

struct calendar { // of one GPU's link, say
    struct calendar *next;
    int device, uses;
    struct span *spans; // the last one is free, and has no end
    int n, room;
    struct turn *turns;
    int nturns;
};
static struct calendar *calendars;

static struct flow *flows; // in the order of the calls
static struct flow **last_flow = &flows;
static const double never = 1e300, patience = 1; // patience: really; see clock_flow

static struct calendar *calendar_of(int device, int uses) {
    struct calendar **at = &calendars;
    while (*at && ((*at)->device != device || (*at)->uses != uses))
        at = &(*at)->next;
    if (!*at) {
        *at = must_alloc(sizeof **at);
        (*at)->device = device;
        (*at)->uses = uses;
        (*at)->room = 64;
        (*at)->spans = must_alloc(64 * sizeof(struct span));
        (*at)->n = 1;
    }
    return *at;
}

/* What ended before `time`. */
static void forget_past(struct calendar *calendar, double time) {
    int old = 0;
    while (old + 1 < calendar->n && calendar->spans[old + 1].at <= time)
        old++;
    if (old < 32)
        return;
    calendar->n -= old;
    memmove(calendar->spans, calendar->spans + old,
            (size_t)calendar->n * sizeof(struct span));
}

struct flow *clock_queue(int device, int stream, const struct cost *cost) {
    // Nothing that comes now, or whose end is not known yet, starts before this.
    double least = host_time;
    for (const struct flow *flow = flows; flow; flow = flow->next)
        if (!flow->known) {
            least = flow->queued;
            break;
        }
    for (struct calendar *calendar = calendars; calendar; calendar = calendar->next)
        forget_past(calendar, least);
    for (struct flow **at = &flows; *at;) {
        struct flow *flow = *at;
        if (!flow->known || flow->end > least) {
            at = &flow->next;
            continue;
        }
        *at = flow->next;
        if (last_flow == &flow->next)
            last_flow = at;
        free(flow);
    }
    if (!cost->uses)
        return NULL;
    struct flow *flow = must_alloc(sizeof *flow);
    flow->device = device;
    flow->stream = stream;
    flow->queued = host_time;
    flow->cost = *cost;
    *last_flow = flow;
    last_flow = &flow->next;
    return flow;
}

/* The span that begins at t; makes it, of one that goes on there. */
static int span_at(struct calendar *calendar, double t) {
    int low = 0, high = calendar->n;
    while (low + 1 < high) {
        int middle = (low + high) / 2;
        if (calendar->spans[middle].at <= t)
            low = middle;
        else
            high = middle;
    }
    if (calendar->spans[low].at >= t)
        return low;
    if (calendar->n == calendar->room) {
        calendar->room *= 2;
        calendar->spans =
            must_grow(calendar->spans, (size_t)calendar->room * sizeof(struct span));
    }
    memmove(calendar->spans + low + 2, calendar->spans + low + 1,
            (size_t)(calendar->n - low - 1) * sizeof(struct span));
    calendar->n++;
    calendar->spans[low + 1] = (struct span){t, calendar->spans[low].used};
    return low + 1;
}

/* The multiprocessors that are left to a product at t, beside what NCCL was called to do
 * before it; and until when at least. */
static double units_left(const struct flow *flow, double t, double *until) {
    double left = value[UNITS];
    *until = never;
    for (const struct flow *other = flows; other != flow; other = other->next) {
        if (other->device != flow->device || other->cost.units <= 0 ||
            other->end <= flow->queued)
            continue;
        double end = other->known ? other->end : never;
        if (other->from <= t && t < end)
            left -= other->cost.units;
        double edge = other->from > t ? other->from : end;
        *until = edge > t && edge < *until ? edge : *until;
    }
    return left > 1 ? left : 1;
}

/* When the last block of a product that starts at t is done. A multiprocessor has two
 * blocks at a time, and none is interrupted. All take equally long: so long that it takes
 * `work` if it has the GPU for itself. */
static double last_block(const struct flow *flow, double t) {
    enum { MOST = 32 }; // that started at different times and still run
    double left = flow->cost.blocks, running = 0;
    double each = flow->cost.work / ceil(left / (2 * value[UNITS]));
    struct {
        double end, n;
    } started[MOST];
    for (unsigned first = 0, next = 0;;) {
        double until, n = fmin(2 * units_left(flow, t, &until) - running, left);
        if (n > 0 && next - first < MOST) {
            started[next % MOST].end = t + each;
            started[next++ % MOST].n = n;
            running += n;
            left -= n;
        }
        if (left <= 0)
            return t + each;
        t = until;
        if (first < next && started[first % MOST].end <= until) {
            t = started[first % MOST].end;
            running -= started[first++ % MOST].n;
        }
    }
}

/* What was called first would get all that it can use, and those of other streams that go
 * on at the same time the rest. Really they share. So each leaves an equal share of what
 * is free to those that are not called yet, but will be: the streams whose newest
 * operation ran beside its stream's newest one. */
static double share_of(struct calendar *calendar, const struct flow *flow,
                       struct turn **mine) {
    int sharers = 1;
    *mine = NULL;
    for (int t = 0; t < calendar->nturns; t++)
        if (calendar->turns[t].stream == flow->stream)
            *mine = &calendar->turns[t];
    if (!*mine) {
        calendar->turns = must_grow(calendar->turns,
                                    (size_t)(calendar->nturns + 1) * sizeof(struct turn));
        *mine = &calendar->turns[calendar->nturns++];
        **mine = (struct turn){flow->stream, -1, -1};
    }
    double from = (*mine)->start, to = (*mine)->end;
    for (int t = 0; t < calendar->nturns; t++) {
        const struct turn *other = &calendar->turns[t];
        double beside = fmin(to, other->end) - fmax(from, other->start);
        sharers += beside > (to - from) / 2 && other != *mine;
    }
    return 1.0 / sharers;
}

/* Enters the flow: it gets what those before it leave free. Returns its end. */
static double enter(struct calendar *calendar, const struct flow *flow) {
    double part = flow->cost.part > 1e-6 ? flow->cost.part : 1e-6, share = 1;
    double left = flow->cost.work, t = flow->start, end = never;
    struct turn *turn = NULL;
    if (flow->cost.uses & USES_LINK)
        share = share_of(calendar, flow, &turn);
    for (int i = span_at(calendar, t);; i++) {
        double used = calendar->spans[i].used, rate = fmin((1 - used) * share, part);
        double next = i + 1 < calendar->n ? calendar->spans[i + 1].at : never;
        rate = rate > 1e-9 ? rate : 0;
        if (flow->cost.blocks == 0)
            end = rate > 0 ? t + left / (rate / part) : never;
        else if (rate > 0 && end == never)
            end = last_block(flow, t);
        double until = fmin(end, next);
        if (until < next)
            span_at(calendar, until);
        calendar->spans[i].used = used + rate;
        if (end <= next) {
            if (turn)
                turn->start = flow->start, turn->end = end;
            return end;
        }
        left -= (until - t) * rate / part;
        t = until;
    }
}

/* Whether `earlier` can make `flow` slower. */
static bool concerns(const struct flow *earlier, const struct flow *flow) {
    bool slows = flow->cost.blocks > 0 && earlier->cost.units > 0;
    return earlier->device == flow->device &&
           (slows || (earlier->cost.uses & flow->cost.uses) != 0);
}

bool clock_flow(struct flow *flow, double from, double start, const struct cost *cost,
                double *end) {
    bool wait = false;
    flow->cost = *cost;
    flow->from = from;
    flow->start = start + cost->latency;
    for (struct flow *earlier = flows; earlier != flow && !wait; earlier = earlier->next)
        wait = !earlier->known && concerns(earlier, flow);
    // The earlier ones may wait for ranks that come only after this one. Then they do not
    // move anything yet. Nobody knows; patience tells.
    if (wait && flow->asked == 0)
        flow->asked = now();
    if (wait && now() - flow->asked < patience)
        return false;
    struct calendar *calendar = calendar_of(flow->device, cost->uses);
    flow->end = flow->start;
    if (cost->work > 0)
        flow->end = enter(calendar, flow);
    *end = flow->end;
    flow->known = true;
    return true;
}
