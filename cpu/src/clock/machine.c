/*
 * machine.c has the machine that is modelled: what the files of its name say.
 */
#define _GNU_SOURCE
#include "clock/machine.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <strings.h>
#include <unistd.h>

bool clock_on;

static const char *const op_names[CLOCK_OPS] = {
    "broadcast",      "reduce",     "all_reduce", "all_gather",
    "reduce_scatter", "all_to_all", "send_recv",  "gather"};

const char *const clock_algorithms[] = {"Ring", "Tree"};
const char *const clock_protocols[] = {"LL", "LL128", "Simple"};

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
double clock_value[VALUES];
struct machine modelled;
static int given_at[VALUES]; // see depth; 0: not given

const char *clock_machine(void) {
    return modelled.name;
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
        struct tables *tables = &modelled.tables[direct][op];
        for (int t = 0; t < tables->n; t++)
            free(tables->all[t].rows);
        free(tables->all);
        *tables = (struct tables){0};
    }
}

/* Whether this file's times of an operation count. They replace all that another file, of
 * which it takes over the rest, says of that operation. */
static bool counts(int op) {
    if (modelled.times_at[op] != 0 && modelled.times_at[op] < depth)
        return false;
    if (modelled.times_at[op] > depth) {
        forget_tables(op);
        modelled.has_law[op] = false;
        if (modelled.slower_at[op] > depth)
            modelled.slower[op] = 0;
    }
    modelled.times_at[op] = depth;
    return true;
}

static void add_row(int op, bool direct, int ranks, double bytes, double us) {
    int t = 0;
    if (!counts(op))
        return;
    struct tables *tables = &modelled.tables[direct][op];
    while (t < tables->n && tables->all[t].ranks != ranks)
        t++;
    if (t == tables->n) {
        tables->all = base_grow(tables->all, (size_t)(t + 1) * sizeof(struct table));
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
    table->rows = base_grow(table->rows, (size_t)(table->n + 1) * sizeof(struct row));
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

int clock_find(const char *name, const char *const *names, int n) {
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
        (a = clock_find(algorithm, clock_algorithms, 2)) < 0 ||
        (p = clock_find(protocol, clock_protocols, PROTOCOLS)) < 0 || !(new.more >= 0) ||
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
    struct way *way = &modelled.ways[a * PROTOCOLS + p];
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
            modelled.has_law[op] = true;
            modelled.law_latency[op] = x * 1e-6;
            modelled.law_bandwidth[op] = y * 1e9;
        }
        return true;
    }
    if (strcmp(first, "slower") == 0) {
        if (sscanf(line, "%*s %63s %lf %n", second, &x, &end) != 2 || line[end] ||
            (op = op_of(second)) < 0 || !is_row(1, 0, x))
            return false;
        bool better = modelled.slower[op] == 0 || modelled.slower_at[op] >= depth;
        if (better && (modelled.times_at[op] == 0 || modelled.times_at[op] >= depth)) {
            modelled.slower[op] = x;
            modelled.slower_at[op] = depth;
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
                clock_value[v] = x * known[v].scale;
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
    memset(&modelled, 0, sizeof modelled);
    memset(given_at, 0, sizeof given_at);
    clock_value[SCALE] = 1;
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
        if (modelled.tables[PLAIN][op].n == 0 && !modelled.has_law[op])
            wrong("%s does not say how long %s takes", path, op_names[op]);
    const char *slash = strrchr(asked, '/'), *base = slash ? slash + 1 : asked;
    const char *dot = strrchr(base, '.');
    int length =
        (int)(dot && strcmp(dot, ".conf") == 0 ? (size_t)(dot - base) : strlen(base));
    snprintf(modelled.name, sizeof modelled.name, "%.*s", length, base);
    clock_on = true;
}
