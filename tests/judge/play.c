/*
 * play.c: plays what a program does, told as events, to the judges of N ranks in one
 * process.
 *
 *     play FILE...          every case of the files, at all its numbers of ranks; prints
 *                           TAP
 *     play -n 234 FILE...   the same at these numbers, and at each case's lowest
 *     play -v FILE [CASE]   prints the reports too; only the cases whose name contains
 *                           CASE
 *
 * README.md beside it lists the events.
 */
#define _GNU_SOURCE
#include "judge.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 16, WORDS = 40 }; // ranks; words in a line

static bool verbose;
static const char *counts = "12345678"; // numbers of ranks

static const char *file;
static char **lines; // from 1
static int nlines;

static void die(int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(2);
}

static void read_file(const char *path) {
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!in) {
        perror(path);
        exit(2);
    }
    nlines = 0;
    lines = realloc(lines, 2 * sizeof *lines);
    while (getline(&line, &size, in) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        lines = realloc(lines, (size_t)(nlines + 3) * sizeof *lines);
        lines[++nlines] = strdup(line);
    }
    free(line);
    fclose(in);
}

static void forget_file(void) {
    for (int i = 1; i <= nlines; i++)
        free(lines[i]);
}

struct named { // what a rank calls by a name
    char name[24];
    enum {
        NOTHING,
        MEMORY,
        HOST,
        STREAM,
        EVENT,
        GRAPH,
        EXECUTABLE,
        FUNCTION,
        COMM,
        LENT
    } kind;
    int number, device;
    uint64_t address, bytes, id;
    int rank, nranks;
};

struct rank {
    struct judge *judge;
    struct named *names;
    int nnames;
    uint64_t next_address;
    double starved; // since then its threads have had no processor; 0: they have
    bool works;     // between its questions too
    bool strangers;
    struct judge_at last; // the event that `fails` means
    bool ended;
};

struct report {
    int rank, line;
    char *text;
};

struct message {
    int from, to;
    size_t bytes;
    char *data;
};

static struct rank ranks[MOST];
static int n;        // ranks
static double now;   // seconds
static int line_now; // that is played
static struct report *reports;
static int nreports;
static bool job_over;
static struct message *link;
static size_t nlink, link_size;

static double tell_time(void *self) {
    (void)self;
    return now;
}

static void send_to(void *self, int to, const void *data, size_t bytes) {
    if (nlink == link_size) {
        link_size = link_size ? 2 * link_size : 64;
        link = realloc(link, link_size * sizeof *link);
    }
    link[nlink] = (struct message){(int)((struct rank *)self - ranks), to, bytes,
                                   malloc(bytes + 1)};
    memcpy(link[nlink++].data, data, bytes);
}

static void say(void *self, const char *text, bool end, uint64_t key) {
    (void)key;
    reports = realloc(reports, (size_t)(nreports + 1) * sizeof *reports);
    reports[nreports++] =
        (struct report){(int)((struct rank *)self - ranks), line_now, strdup(text)};
    job_over |= end;
    if (verbose)
        printf("# line %d, %d ranks, at %.3f s, rank %d%s: %s", line_now, n, now,
               (int)((struct rank *)self - ranks), end ? "" : " (goes on)", text);
}

static void tell_place(void *self, uint64_t site, char out[JUDGE_PLACE]) {
    (void)self;
    snprintf(out, JUDGE_PLACE, "line %llu", (unsigned long long)site);
}

/* Whom a call of MPI waits for: ranks of the world, how many, and which. */
struct mpi_ranks {
    int n, world[MOST];
};
static struct mpi_ranks everybody;

static int tell_mpi_ranks(void *self, const void *whom, int *world, int most) {
    (void)self;
    const struct mpi_ranks *comm = whom;
    if (!comm)
        return -1;
    for (int i = 0; i < comm->n && i < most; i++)
        world[i] = comm->world[i];
    return comm->n < most ? comm->n : most;
}

static bool tell_strangers(void *self) {
    return ((struct rank *)self)->strangers;
}

static double tell_worked(void *self, uint64_t name) {
    const struct rank *rank = self;
    (void)name;
    return (rank->starved > 0 ? rank->starved : now) * (rank->works ? 1 : 0.05);
}

static bool apart; // each rank is on a machine of its own

static void start(int nranks, const struct judge_options *options) {
    n = nranks;
    now = 1000;
    nreports = 0;
    job_over = false;
    everybody.n = n;
    for (int r = 0; r < n; r++) {
        const struct judge_outside outside = {.self = &ranks[r],
                                              .now = tell_time,
                                              .send = send_to,
                                              .say = say,
                                              .place = tell_place,
                                              .mpi_ranks = tell_mpi_ranks,
                                              .strangers = tell_strangers,
                                              .worked = tell_worked};
        everybody.world[r] = r;
        ranks[r] = (struct rank){.next_address = 0x100000};
        ranks[r].judge = judge_new(&outside, options);
        char host[16] = "host";
        if (apart)
            snprintf(host, sizeof host, "host%d", r);
        judge_world(ranks[r].judge, r, n, host);
    }
}

static void stop(void) {
    for (int r = 0; r < n; r++) {
        judge_free(ranks[r].judge);
        free(ranks[r].names);
    }
    for (size_t m = 0; m < nlink; m++)
        free(link[m].data);
    nlink = 0;
    for (int i = 0; i < nreports; i++)
        free(reports[i].text);
    nreports = 0;
}

static void deliver(void) {
    for (size_t m = 0; m < nlink && !job_over; m++) {
        struct message message = link[m]; // an answer to it may move the list
        struct judge *judge = ranks[message.to].judge;
        judge_enter(judge, 0);
        judge_receive(judge, message.from, message.data, message.bytes);
        judge_leave(judge);
    }
    for (size_t m = 0; m < nlink; m++)
        free(link[m].data);
    nlink = 0;
}

/* Everybody looks once; true if anybody waits, or anything is on its way. */
static bool look(void) {
    bool more = false;
    for (int r = 0; r < n && !job_over; r++) {
        judge_enter(ranks[r].judge, 0);
        more |= judge_look(ranks[r].judge);
        judge_leave(ranks[r].judge);
    }
    more |= nlink > 0;
    deliver();
    return more;
}

static void pass(double seconds) {
    for (double until = now + seconds; now < until && !job_over;) {
        now += 0.1;
        look();
    }
}

struct event { // one line, for one rank
    int line, rank, thread;
    char *words[WORDS];
    int nwords;
    struct judge *judge;
};

static const char *word(const struct event *e, int i) {
    if (i >= e->nwords)
        die(e->line, "a word is missing: %s", e->words[0]);
    return e->words[i];
}

static bool has(const struct event *e, const char *what) {
    for (int i = 1; i < e->nwords; i++)
        if (strcmp(e->words[i], what) == 0)
            return true;
    return false;
}

/* The word after `what`; NULL: it is not there. */
static const char *behind(const struct event *e, const char *what) {
    for (int i = 1; i + 1 < e->nwords; i++)
        if (strcmp(e->words[i], what) == 0)
            return e->words[i + 1];
    return NULL;
}

static long iteration; // of the innermost loop, from 0

/* Sums and products of numbers, n (ranks), r (this rank), last, next, prev, i
 * (iteration). */
static long factor(const char **at, int rank, int line) {
    char *end;
    long value = strtol(*at, &end, 0);
    if (end != *at) {
        *at = end;
        return value;
    }
    const struct {
        const char *name;
        long value;
    } names[] = {{"i", iteration},
                 {"next", (rank + 1) % n},
                 {"prev", (rank + n - 1) % n},
                 {"last", n - 1},
                 {"n", n},
                 {"r", rank}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(*at, names[i].name, strlen(names[i].name)) == 0) {
            *at += strlen(names[i].name);
            return names[i].value;
        }
    die(line, "no number: %s", *at);
    return 0;
}

static long product(const char **at, int rank, int line) {
    long value = factor(at, rank, line);
    while (**at == '*') {
        ++*at;
        value *= factor(at, rank, line);
    }
    return value;
}

static long sum(const char **at, int rank, int line) {
    long value = product(at, rank, line);
    while (**at == '+' || **at == '-') {
        bool plus = *(*at)++ == '+';
        long more = product(at, rank, line);
        value += plus ? more : -more;
    }
    return value;
}

static long number(const struct event *e, const char *text) {
    const char *at = text;
    long value = sum(&at, e->rank, e->line);
    if (*at)
        die(e->line, "no number: %s", text);
    return value;
}

static long number_behind(const struct event *e, const char *what, long otherwise) {
    const char *text = behind(e, what);
    return text ? number(e, text) : otherwise;
}

static struct named *look_up(const struct event *e, const char *name, size_t length) {
    struct rank *rank = &ranks[e->rank];
    for (int i = rank->nnames; i-- > 0;)
        if (strlen(rank->names[i].name) == length &&
            strncmp(rank->names[i].name, name, length) == 0)
            return &rank->names[i];
    return NULL;
}

static struct named *named(const struct event *e, const char *name, int kind) {
    struct named *found = look_up(e, name, strlen(name));
    if (!found && kind == STREAM && strncmp(name, "legacy", 6) == 0) {
        struct rank *rank = &ranks[e->rank];
        int device = name[6] ? atoi(name + 6) : 0;
        rank->names =
            realloc(rank->names, (size_t)(rank->nnames + 1) * sizeof *rank->names);
        found = &rank->names[rank->nnames++];
        *found = (struct named){.kind = STREAM, .device = device};
        snprintf(found->name, sizeof found->name, "%s", name);
        found->number =
            judge_stream_made(e->judge, JUDGE_LEGACY, device, (struct judge_at){NULL, 0});
    }
    if (!found || (int)found->kind != kind)
        die(e->line, "rank %d knows no such thing: %s", e->rank, name);
    return found;
}

static struct named *name_new(const struct event *e, int kind) {
    const char *name = word(e, 1);
    struct rank *rank = &ranks[e->rank];
    rank->names = realloc(rank->names, (size_t)(rank->nnames + 1) * sizeof *rank->names);
    struct named *fresh = &rank->names[rank->nnames++];
    *fresh = (struct named){.kind = kind};
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

/* NAME, NAME+4*r, or null */
static const void *address(const struct event *e, const char *text) {
    size_t length = strcspn(text, "+");
    const struct named *memory = look_up(e, text, length);
    if (strcmp(text, "null") == 0)
        return NULL;
    if (!memory || (memory->kind != MEMORY && memory->kind != HOST))
        die(e->line, "rank %d knows no such memory: %s", e->rank, text);
    uint64_t offset = text[length] ? (uint64_t)number(e, text + length + 1) : 0;
    return (const void *)(uintptr_t)(memory->address + offset);
}

static int stream_of(const struct event *e, const char *name) {
    return named(e, name, STREAM)->number;
}

static struct judge_at here(const struct event *e, const char *call) {
    struct judge_at at = {call, (uint64_t)e->line};
    ranks[e->rank].last = at;
    return at;
}

static const char *kept(const char *word) { // for as long as the process
    static char *all[256];
    int i = 0;
    while (i < 255 && all[i] && strcmp(all[i], word) != 0)
        i++;
    if (!all[i])
        all[i] = strdup(word);
    return all[i];
}

static void take_address(const struct event *e, struct named *memory) {
    const char *at = behind(e, "at");
    memory->bytes = (uint64_t)number(e, word(e, 2));
    memory->address =
        at ? (uint64_t)(uintptr_t)address(e, at) : ranks[e->rank].next_address;
    if (!at)
        ranks[e->rank].next_address += (memory->bytes + 4096 + 255) / 256 * 256;
}

static void make(const struct event *e, enum judge_memory_kind kind, const char *call) {
    struct named *memory = name_new(e, MEMORY);
    take_address(e, memory);
    const char *on = behind(e, "on");
    judge_memory_made(e->judge, (const void *)(uintptr_t)memory->address, memory->bytes,
                      kind, (int)number_behind(e, "device", 0),
                      on ? stream_of(e, on) : -1, here(e, call));
}

static void ev_malloc(const struct event *e) {
    bool async = behind(e, "on") != NULL;
    make(e, async ? JUDGE_POOL : JUDGE_DEVICE, async ? "cudaMallocAsync" : "cudaMalloc");
}
static void ev_pinned(const struct event *e) {
    make(e, JUDGE_PINNED, "cudaMallocHost");
}
static void ev_registered(const struct event *e) {
    make(e, JUDGE_HOST_REGISTERED, "cudaHostRegister");
}
static void ev_managed(const struct event *e) {
    make(e, JUDGE_MANAGED, "cudaMallocManaged");
}
static void ev_peer(const struct event *e) {
    make(e, JUDGE_PEER, "cudaIpcOpenMemHandle");
}
static void ev_host(const struct event *e) {
    take_address(e, name_new(e, HOST));
}
/* overrun A BYTE */
/* reaches D PEER [no-more] */
static void ev_reaches(const struct event *e) {
    judge_peer_access(e->judge, (int)number(e, word(e, 1)), (int)number(e, word(e, 2)),
                      !has(e, "no-more"));
}
static void ev_overrun(const struct event *e) {
    judge_memory_overrun(e->judge, address(e, word(e, 1)), (size_t)number(e, word(e, 2)),
                         here(e, "cudaFreeHost"));
}
/* The registration is in the event before. */
static void ev_registered_freed(const struct event *e) {
    const struct judge_at registered = ranks[e->rank].last;
    judge_found(e->judge, JUDGE_REGISTERED_FREED, -1, registered, here(e, "ncclMemFree"));
}
static void ev_free(const struct event *e) {
    const char *on = behind(e, "on"), *call = behind(e, "in");
    judge_memory_freed(e->judge, address(e, word(e, 1)), on ? stream_of(e, on) : -1,
                       here(e, kept(call ? call
                                    : on ? "cudaFreeAsync"
                                         : "cudaFree")));
}
static void ev_open(const struct event *e) {
    judge_memory_open(e->judge, address(e, word(e, 1)));
}

static void ev_meets(const struct event *e) {
    judge_meets(e->judge, (uint64_t)number(e, word(e, 1)));
}

static void ev_uses(const struct event *e) {
    const char *call = behind(e, "in");
    judge_host_uses(e->judge, address(e, word(e, 2)), (size_t)number(e, word(e, 3)),
                    strcmp(word(e, 1), "write") == 0, has(e, "device-too"),
                    here(e, kept(call ? call : "MPI_Send")));
}

/* lends L A BYTES read|write; back L */
static void ev_lends(const struct event *e) {
    bool write = strcmp(word(e, 4), "write") == 0;
    struct named *lent = name_new(e, LENT);
    lent->number =
        judge_memory_lent(e->judge, address(e, word(e, 2)), (size_t)number(e, word(e, 3)),
                          write, here(e, write ? "MPI_Irecv" : "MPI_Isend"));
}
static void ev_back(const struct event *e) {
    judge_memory_back(e->judge, named(e, word(e, 1), LENT)->number);
}
/* early A [read], or `not` after it: what judge_host_is_early says */
static void ev_early(const struct event *e) {
    bool early = judge_host_is_early(e->judge, address(e, word(e, 1)), !has(e, "read"));
    if (early == has(e, "not"))
        die(e->line, "judge_host_is_early: %s", early ? "it is" : "it is not");
}

/* strangers [not]: threads that have told nothing */
static void ev_strangers(const struct event *e) {
    ranks[e->rank].strangers = !has(e, "not");
}
/* works [not]: this rank's threads have the processor between their questions too */
static void ev_works(const struct event *e) {
    ranks[e->rank].works = !has(e, "not");
}

/* starved [not]: this rank's threads get no processor */
static void ev_starved(const struct event *e) {
    ranks[e->rank].starved = has(e, "not") ? 0 : now;
}
static void ev_touches(const struct event *e) {
    const char *how = word(e, 1);
    judge_host_faults(e->judge, address(e, word(e, 2)), strcmp(how, "write") == 0,
                      strcmp(how, "read") == 0 || strcmp(how, "write") == 0,
                      here(e, "").site);
}

static void ev_knows(const struct event *e) {
    struct judge_memory memory;
    bool found = judge_memory_find(e->judge, address(e, word(e, 1)), &memory);
    if (found == has(e, "not"))
        die(e->line, "judge_memory_find: %s", found ? "there" : "not there");
    if (found && memory.bytes != (size_t)number(e, word(e, 2)))
        die(e->line, "judge_memory_find: %zu bytes", memory.bytes);
}

struct in_use {
    const struct event *event;
    const char *start;
    char text[200];
};

static void add_in_use(void *self, const void *start, size_t bytes, bool write) {
    struct in_use *use = self;
    size_t used = strlen(use->text), from = (size_t)((const char *)start - use->start);
    snprintf(use->text + used, sizeof use->text - used, "%s%zu-%zu%s", used ? " " : "",
             from, from + bytes, write ? "w" : "r");
}

/* in-use a 0-16w 16-32r */
static void ev_in_use(const struct event *e) {
    struct in_use use = {.event = e, .start = address(e, word(e, 1))};
    char expected[200] = "";
    for (int i = 2; i < e->nwords; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                 i > 2 ? " " : "", e->words[i]);
    judge_memory_in_use(e->judge, use.start, add_in_use, &use);
    if (strcmp(expected, use.text) != 0)
        die(e->line, "in use: %s", use.text);
}

static void ev_stream(const struct event *e) {
    struct named *stream = name_new(e, STREAM);
    stream->device = (int)number_behind(e, "device", 0);
    stream->number = judge_stream_made(
        e->judge, has(e, "nonblocking") ? JUDGE_NON_BLOCKING : JUDGE_BLOCKING,
        stream->device, here(e, "cudaStreamCreate"));
}
static void ev_stream_gone(const struct event *e) {
    judge_stream_gone(e->judge, stream_of(e, word(e, 1)));
}

static void sync_stream(const struct event *e, int stream, const char *call) {
    judge_wait_stream(e->judge, stream, here(e, call));
    judge_wait_end(e->judge, true);
}

/* memcpy TO FROM BYTES; with `on STREAM`, cudaMemcpyAsync */
static void ev_memcpy(const struct event *e) {
    size_t bytes = (size_t)number(e, word(e, 3));
    const char *on = behind(e, "on"), *call = on ? "cudaMemcpyAsync" : "cudaMemcpy";
    struct judge_range ranges[2] = {
        {address(e, word(e, 1)), bytes, true, has(e, "to-device")},
        {address(e, word(e, 2)), bytes, false, has(e, "to-host")}};
    int stream = stream_of(e, on ? on : "legacy");
    judge_op(e->judge, stream, ranges, 2, JUDGE_COPY, here(e, call));
    if (!on && !has(e, "early"))
        sync_stream(e, stream, call);
}
static void ev_memset(const struct event *e) {
    const char *on = behind(e, "on");
    struct judge_range range = {address(e, word(e, 1)), (size_t)number(e, word(e, 2)),
                                true, true};
    judge_op(e->judge, stream_of(e, on ? on : "legacy"), &range, 1, JUDGE_SET,
             here(e, on ? "cudaMemsetAsync" : "cudaMemset"));
}
static void ev_kernel(const struct event *e) {
    judge_op(e->judge, stream_of(e, word(e, 1)), NULL, 0, JUDGE_KERNEL,
             here(e, "cudaLaunchKernel"));
}
/* op STREAM [read A BYTES | write A BYTES]... */
static void ev_op(const struct event *e) {
    struct judge_range ranges[WORDS / 3];
    int count = 0;
    for (int i = 2; i + 2 < e->nwords; i += 3)
        ranges[count++] = (struct judge_range){address(e, e->words[i + 1]),
                                               (size_t)number(e, e->words[i + 2]),
                                               strcmp(e->words[i], "write") == 0, true};
    judge_op(e->judge, stream_of(e, word(e, 1)), ranges, count, JUDGE_COMPUTES,
             here(e, "cublasSgemm"));
}

static void ev_event(const struct event *e) {
    name_new(e, EVENT)->number = judge_event_made(e->judge, here(e, "cudaEventCreate"));
}
static void ev_event_gone(const struct event *e) {
    judge_event_gone(e->judge, named(e, word(e, 1), EVENT)->number);
}
static void ev_shares_event(const struct event *e) {
    judge_shares_event(e->judge);
}
static void ev_record(const struct event *e) {
    judge_record(e->judge, named(e, word(e, 1), EVENT)->number, stream_of(e, word(e, 2)),
                 here(e, "cudaEventRecord"));
}
static void ev_stream_waits(const struct event *e) {
    judge_stream_waits(e->judge, stream_of(e, word(e, 1)),
                       named(e, word(e, 2), EVENT)->number,
                       here(e, "cudaStreamWaitEvent"));
}

static void ev_function(const struct event *e) {
    name_new(e, FUNCTION)->number = judge_host_function(
        e->judge, stream_of(e, word(e, 2)), here(e, "cudaLaunchHostFunc"));
}
static void ev_begins(const struct event *e) {
    judge_host_function_begins(e->judge, named(e, word(e, 1), FUNCTION)->number);
}
static void ev_ends(const struct event *e) {
    judge_host_function_ends(e->judge, named(e, word(e, 1), FUNCTION)->number);
}

static void ev_capture(const struct event *e) {
    judge_capture_begins(e->judge, stream_of(e, word(e, 1)),
                         here(e, "cudaStreamBeginCapture"));
}
static void ev_captured(const struct event *e) {
    int graph = judge_capture_ends(e->judge, stream_of(e, word(e, 2)), !has(e, "fails"));
    name_new(e, GRAPH)->number = graph;
}
static void ev_instantiate(const struct event *e) {
    int graph = named(e, word(e, 2), GRAPH)->number;
    name_new(e, EXECUTABLE)->number =
        judge_graph_instantiated(e->judge, graph, here(e, "cudaGraphInstantiate"));
}
static void ev_launch(const struct event *e) {
    judge_graph_launched(e->judge, named(e, word(e, 1), EXECUTABLE)->number,
                         stream_of(e, word(e, 2)), here(e, "cudaGraphLaunch"));
}
static void ev_graph_gone(const struct event *e) {
    judge_graph_gone(e->judge, named(e, word(e, 1), GRAPH)->number);
}
static void ev_executable_gone(const struct event *e) {
    judge_executable_gone(e->judge, named(e, word(e, 1), EXECUTABLE)->number);
}

static uint64_t id_of(const struct event *e, const char *name) {
    uint64_t id = 14695981039346656037u;
    for (const char *c = name; *c; c++)
        id = (id ^ (unsigned char)*c) * 1099511628211u;
    return strcmp(name, "own") == 0 ? id + (uint64_t)e->rank : id;
}

/* join NAME [id ID] [rank R] [of N] [device D] [gpu G] [grows] */
static void ev_join(const struct event *e) {
    struct named *comm = name_new(e, COMM);
    const char *id = behind(e, "id");
    const bool grows = has(e, "grows");
    const char *call = grows ? "ncclCommGrow" : "ncclCommInitRank";
    comm->rank = (int)number_behind(e, "rank", e->rank);
    comm->nranks = (int)number_behind(e, "of", n);
    comm->device = (int)number_behind(e, "device", 0);
    comm->id = id_of(e, id ? id : comm->name);
    struct judge_join join = {.id = comm->id,
                              .rank = comm->rank,
                              .nranks = comm->nranks,
                              .device = comm->device,
                              .how = grows ? JUDGE_GROWS : JUDGE_INITS,
                              .at = here(e, call)};
    snprintf(join.bus_id, sizeof join.bus_id, "0000:%02lx:00.0",
             number_behind(e, "gpu", e->rank));
    judge_joins(e->judge, &join);
}
static void ev_made(const struct event *e) {
    struct named *comm = named(e, word(e, 1), COMM);
    comm->number =
        judge_comm_made(e->judge, comm->id, comm->rank, comm->nranks, comm->device,
                        !has(e, "nonblocking"), here(e, "ncclCommInitRank"));
}
static void ev_makes_id(const struct event *e) {
    const char *same = behind(e, "same");
    judge_id_made(e->judge, id_of(e, word(e, 1)), same ? id_of(e, same) : 0,
                  here(e, "ncclGetUniqueId"));
}

static int comm_of(const struct event *e, const char *name) {
    return named(e, name, COMM)->number;
}

static int index_of(const char *const *names, int count, const char *prefix,
                    const char *word) {
    for (int i = 0; i < count; i++)
        if (strcasecmp(names[i] + strlen(prefix), word) == 0)
            return i;
    return -1;
}

static const size_t type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/* What stands after the buffers: type, reduction, root, peer. */
static void add_details(const struct event *e, int from, struct judge_call *call) {
    call->type = 2;
    call->root = -1;
    for (int i = from; i < e->nwords; i++) {
        const char *w = e->words[i];
        int type = index_of(judge_type_names, 12, "nccl", w);
        int redop = index_of(judge_redop_names, 5, "nccl", w);
        if (type >= 0)
            call->type = type;
        else if (redop >= 0)
            call->redop = redop;
        else if (strcmp(w, "to") == 0 || strcmp(w, "from") == 0 || strcmp(w, "root") == 0)
            call->root = (int)number(e, word(e, ++i));
        else if (strcmp(w, "config") == 0)
            call->config = (uint64_t)number(e, word(e, ++i));
        else if (strcmp(w, "launches") == 0)
            call->launched = named(e, word(e, ++i), EVENT)->number + 1;
        else if (strcmp(w, "window") == 0)
            call->send_offset = call->recv_offset = (size_t)number(e, word(e, ++i)) + 1;
        else if (strcmp(w, "fresh") == 0)
            continue;
        else
            die(e->line, "what is %s?", w);
    }
    call->type_bytes = type_bytes[call->type];
}

/* allreduce COMM STREAM SEND RECV COUNT … ; send COMM STREAM BUFFER COUNT to PEER … */
static void collective(const struct event *e, enum judge_kind kind) {
    struct judge_call call = {.comm = comm_of(e, word(e, 1)),
                              .stream = stream_of(e, word(e, 2)),
                              .kind = kind,
                              .at = here(e, judge_kind_names[kind])};
    const void *buffer = address(e, word(e, 3));
    if (kind == JUDGE_SEND || kind == JUDGE_RECV) {
        call.count = (size_t)number(e, word(e, 4));
        *(kind == JUDGE_SEND ? &call.sendbuff : &call.recvbuff) = buffer;
        add_details(e, 5, &call);
    } else {
        call.sendbuff = buffer;
        call.recvbuff = address(e, word(e, 4));
        call.count = (size_t)number(e, word(e, 5));
        add_details(e, 6, &call);
    }
    // Somebody has filled what is sent, unless the line says that nobody has.
    bool fresh = false;
    for (int i = 5; i < e->nwords; i++)
        fresh |= strcmp(word(e, i), "fresh") == 0;
    if (!fresh && call.sendbuff)
        judge_memory_open(e->judge, call.sendbuff);
    judge_call(e->judge, &call);
}

static void of_all(const struct event *e, int comm, enum judge_kind kind, size_t bytes) {
    struct judge_call call = {.comm = comm,
                              .stream = -1,
                              .kind = kind,
                              .root = -1,
                              .count = bytes,
                              .at = here(e, judge_kind_names[kind])};
    judge_call(e->judge, &call);
}

/* splits NEW OLD COLOR [rank R of N]: what ncclCommSplit tells before, then `made` */
static void ev_splits(const struct event *e) {
    int old = comm_of(e, word(e, 2)), color = (int)number(e, word(e, 3));
    struct named *comm = name_new(e, COMM);
    comm->rank = (int)number_behind(e, "rank", e->rank);
    comm->nranks = (int)number_behind(e, "of", n);
    comm->device = named(e, word(e, 2), COMM)->device;
    of_all(e, old, JUDGE_SPLIT, 0);
    comm->id = judge_split_id(e->judge, old, color);
}
static void ev_register(const struct event *e) {
    size_t bytes = e->nwords > 2 ? (size_t)number(e, word(e, 2)) : 0;
    of_all(e, comm_of(e, word(e, 1)), JUDGE_REGISTER, bytes);
    if (behind(e, "at"))
        judge_window_made(e->judge, comm_of(e, word(e, 1)), address(e, behind(e, "at")),
                          bytes, has(e, "more"));
}
/* put C R FROM BYTES on S; signal C R [waits N] on S */
static void one_sided(const struct event *e, const char *call,
                      const struct judge_put *put) {
    int stream = stream_of(e, behind(e, "on"));
    int waits = (int)number_behind(e, "waits", 0);
    struct judge_signal signal = {.comm = comm_of(e, word(e, 1)),
                                  .stream = stream,
                                  .put = put,
                                  .at = here(e, call)};
    judge_op(e->judge, stream, NULL, 0, waits ? JUDGE_AWAITS : JUDGE_PUTS, signal.at);
    if (put)
        judge_put(e->judge, &signal);
    judge_signals(e->judge, signal, (int)number(e, word(e, 2)), 0, waits);
}
static void ev_put(const struct event *e) {
    one_sided(e, "ncclPutSignal",
              &(struct judge_put){.window = 1,
                                  .from = (size_t)number(e, word(e, 3)),
                                  .bytes = (size_t)number(e, word(e, 4))});
}
static void ev_deregister(const struct event *e) {
    judge_window_gone(e->judge, comm_of(e, word(e, 1)), 1,
                      here(e, "ncclCommWindowDeregister"));
}
static void ev_signal(const struct event *e) {
    one_sided(e, has(e, "waits") ? "ncclWaitSignal" : "ncclSignal", NULL);
}
static void ev_suspend(const struct event *e) {
    of_all(e, comm_of(e, word(e, 1)), JUDGE_SUSPEND, 0);
}
static void ev_resume(const struct event *e) {
    of_all(e, comm_of(e, word(e, 1)), JUDGE_RESUME, 0);
}

static void comm_ends(const struct event *e, enum judge_end how, const char *call) {
    judge_comm_ends(e->judge, comm_of(e, word(e, 1)), how, here(e, call));
}
static void ev_complete(const struct event *e) {
    judge_comm_complete(e->judge, comm_of(e, word(e, 1)));
}
static void ev_destroy(const struct event *e) {
    comm_ends(e, JUDGE_DESTROYED, "ncclCommDestroy");
}
static void ev_finalize(const struct event *e) {
    comm_ends(e, JUDGE_FINALIZED, "ncclCommFinalize");
}
static void ev_abort(const struct event *e) {
    comm_ends(e, JUDGE_ABORTED, "ncclCommAbort");
}
static void ev_revoke(const struct event *e) {
    comm_ends(e, JUDGE_REVOKED, "ncclCommRevoke");
}
static void ev_used_after(const struct event *e) {
    judge_comm_used_after(e->judge, comm_of(e, word(e, 1)), here(e, kept(word(e, 2))));
}
static void ev_used_before(const struct event *e) {
    struct judge_at made = ranks[e->rank].last;
    judge_found(e->judge, JUDGE_NOT_READY, -1, made, here(e, kept(word(e, 1))));
}
static void ev_answered(const struct event *e) {
    judge_call_answered(e->judge, !has(e, "done"));
}
static void ev_group(const struct event *e) {
    judge_group_starts(e->judge, here(e, "ncclGroupStart"));
}
static void ev_end_group(const struct event *e) {
    judge_group_ends(e->judge, here(e, "ncclGroupEnd"));
}

static void join_words(const struct event *e, int from, char *out, size_t bytes) {
    out[0] = '\0';
    for (int i = from; i < e->nwords; i++)
        snprintf(out + strlen(out), bytes - strlen(out), "%s%s", i > from ? " " : "",
                 e->words[i]);
}

/* The event before has failed: fails cuda TEXT, fails nccl TEXT. A call that is no event:
 * failed cuda CALL TEXT. */
static void ev_fails(const struct event *e) {
    char text[200];
    join_words(e, 2, text, sizeof text);
    judge_failed(e->judge, strcmp(word(e, 1), "cuda") == 0, NULL, text,
                 ranks[e->rank].last);
}
static void ev_failed(const struct event *e) {
    char text[200];
    join_words(e, 3, text, sizeof text);
    const struct judge_at at = here(e, kept(word(e, 2)));
    judge_failed(e->judge, strcmp(word(e, 1), "cuda") == 0, NULL, text, at);
}
/* returned CALL CODE TEXT */
static void ev_returned(const struct event *e) {
    char text[200];
    join_words(e, 3, text, sizeof text);
    const struct judge_at at = here(e, kept(word(e, 1)));
    judge_failed(e->judge, false, word(e, 2), text, at);
}
static void ev_looked(const struct event *e) {
    judge_looked(e->judge);
}

/* handle STREAM D CALL: that of the event before is of device D */
static void ev_handle(const struct event *e) {
    judge_handle_device(e->judge, stream_of(e, word(e, 1)), (int)number(e, word(e, 2)),
                        ranks[e->rank].last, here(e, kept(word(e, 3))));
}
/* two-threads COMM CALL: the other is in the event before */
static void ev_two_threads(const struct event *e) {
    const struct judge_at other = ranks[e->rank].last;
    judge_found(e->judge, JUDGE_TWO_THREADS, comm_of(e, word(e, 1)), other,
                here(e, kept(word(e, 2))));
}

/* Begins a wait: wait stream S | event E | device [D] | launch | leave C | mpi
 * all|any|one-of|PEER [in CALL] [of RANKS] */
static void ev_wait(const struct event *e) {
    const char *what = word(e, 1), *in = behind(e, "in");
    if (strcmp(what, "stream") == 0) {
        judge_wait_stream(e->judge, stream_of(e, word(e, 2)),
                          here(e, "cudaStreamSynchronize"));
    } else if (strcmp(what, "event") == 0) {
        judge_wait_event(e->judge, named(e, word(e, 2), EVENT)->number,
                         here(e, "cudaEventSynchronize"));
    } else if (strcmp(what, "device") == 0) {
        judge_wait_device(e->judge, e->nwords > 2 ? (int)number(e, word(e, 2)) : 0,
                          here(e, "cudaDeviceSynchronize"));
    } else if (strcmp(what, "launch") == 0) {
        judge_wait_launch(e->judge, here(e, kept(in ? in : "ncclGroupEnd")));
    } else if (strcmp(what, "leave") == 0) {
        judge_wait_leave(e->judge, comm_of(e, word(e, 2)), here(e, "ncclCommDestroy"));
    } else if (strcmp(what, "mpi") == 0) {
        static struct mpi_ranks some[MOST];
        const char *peer = word(e, 2), *of = behind(e, "of");
        struct mpi_ranks *whom = &everybody;
        int kind = strcmp(peer, "all") == 0      ? JUDGE_ALL
                   : strcmp(peer, "any") == 0    ? JUDGE_ANY
                   : strcmp(peer, "one-of") == 0 ? JUDGE_ONE_OF
                                                 : (int)number(e, peer);
        if (of || kind >= 0) { // "0,1"
            whom = &some[e->rank];
            whom->n = 0;
            for (const char *at = of ? of : peer; *at; at += *at == ',')
                whom->world[whom->n++] = (int)sum(&at, e->rank, e->line);
        }
        enum judge_way way = has(e, "sends")        ? JUDGE_SENDS
                             : has(e, "receives")   ? JUDGE_RECEIVES
                             : has(e, "no-message") ? JUDGE_NO_MESSAGE
                             : has(e, "meets")      ? JUDGE_MEETS
                                                    : JUDGE_MORE;
        judge_wait_mpi(e->judge, whom, kind, way,
                       here(e, kept(in                  ? in
                                    : kind == JUDGE_ALL ? "MPI_Barrier"
                                                        : "MPI_Recv")));
    } else {
        die(e->line, "wait for what: %s", what);
    }
}
static void ev_returns(const struct event *e) {
    judge_wait_end(e->judge, true);
}
static void ev_gives_up(const struct event *e) {
    judge_wait_end(e->judge, false);
}
/* sync: a wait that returns, of a stream, an event, or (no word) the device */
static void ev_sync(const struct event *e) {
    const struct named *what =
        e->nwords > 1 ? look_up(e, e->words[1], strlen(e->words[1])) : NULL;
    if (e->nwords == 1)
        judge_wait_device(e->judge, 0, here(e, "cudaDeviceSynchronize"));
    else if (what && what->kind == EVENT)
        judge_wait_event(e->judge, what->number, here(e, "cudaEventSynchronize"));
    else
        judge_wait_stream(e->judge, stream_of(e, e->words[1]),
                          here(e, "cudaStreamSynchronize"));
    judge_wait_end(e->judge, true);
}
/* query stream S | event E | mpi | comm C, and then done, or not */
static void polls_join(const struct event *e) {
    const struct named *comm = named(e, word(e, 2), COMM);
    const struct judge_join join = {.id = comm->id,
                                    .rank = comm->rank,
                                    .nranks = comm->nranks,
                                    .device = comm->device,
                                    .at = here(e, "ncclCommInitRankConfig")};
    judge_poll_join(e->judge, &join, here(e, "ncclCommGetAsyncError"));
}
static void ev_query(const struct event *e) {
    const char *what = word(e, 1);
    bool done = has(e, "done");
    if (done == has(e, "not"))
        die(e->line, "done, or not?");
    if (strcmp(what, "stream") == 0)
        judge_poll_stream(e->judge, stream_of(e, word(e, 2)), done,
                          here(e, "cudaStreamQuery"));
    else if (strcmp(what, "event") == 0)
        judge_poll_event(e->judge, named(e, word(e, 2), EVENT)->number, done,
                         here(e, "cudaEventQuery"));
    else if (strcmp(what, "mpi") == 0)
        judge_poll_mpi(e->judge, done, here(e, "MPI_Test"));
    else if (strcmp(what, "comm") == 0)
        judge_poll_comm(e->judge, comm_of(e, word(e, 2)), done,
                        here(e, "ncclCommGetAsyncError"));
    else if (done)
        judge_wait_end(e->judge, true);
    else
        polls_join(e);
}
/* joins-thread T [returns]: waits until that thread has ended */
static void ev_joins_thread(const struct event *e) {
    judge_waits_thread(e->judge, has(e, "returns") ? 0 : (uint64_t)number(e, word(e, 1)));
}
static void ev_finish(const struct event *e) {
    ranks[e->rank].ended = true;
    judge_finishes(e->judge, JUDGE_FINALIZES, here(e, "MPI_Finalize"));
}
static void ev_exit(const struct event *e) {
    ranks[e->rank].ended = true;
    judge_exits(e->judge);
    judge_finishes(e->judge, JUDGE_EXITS, here(e, "MPI_Finalize"));
}
static void ev_ends_job(const struct event *e) {
    ranks[e->rank].ended = true;
    judge_finishes(e->judge, JUDGE_ENDS_JOB, here(e, "MPI_Abort"));
}
static void ev_thread_gone(const struct event *e) {
    judge_thread_gone(e->judge, e->thread);
}

#define CALL(name, kind)                           \
    static void ev_##name(const struct event *e) { \
        collective(e, kind);                       \
    }
CALL(broadcast, JUDGE_BROADCAST)
CALL(allreduce, JUDGE_ALL_REDUCE)
CALL(reduce, JUDGE_REDUCE)
CALL(allgather, JUDGE_ALL_GATHER)
CALL(reducescatter, JUDGE_REDUCE_SCATTER)
CALL(alltoall, JUDGE_ALL_TO_ALL)
CALL(gather, JUDGE_GATHER)
CALL(scatter, JUDGE_SCATTER)
CALL(send, JUDGE_SEND)
CALL(recv, JUDGE_RECV)

static const struct {
    const char *word;
    void (*play)(const struct event *e);
} events[] = {
    {"malloc", ev_malloc},
    {"pinned", ev_pinned},
    {"registered", ev_registered},
    {"managed", ev_managed},
    {"peer", ev_peer},
    {"host", ev_host},
    {"free", ev_free},
    {"registered-freed", ev_registered_freed},
    {"overrun", ev_overrun},
    {"reaches", ev_reaches},
    {"open", ev_open},
    {"uses", ev_uses},
    {"meets", ev_meets},
    {"handle", ev_handle},
    {"two-threads", ev_two_threads},
    {"lends", ev_lends},
    {"back", ev_back},
    {"early", ev_early},
    {"starved", ev_starved},
    {"works", ev_works},
    {"strangers", ev_strangers},
    {"touches", ev_touches},
    {"knows", ev_knows},
    {"in-use", ev_in_use},
    {"stream", ev_stream},
    {"stream-gone", ev_stream_gone},
    {"memcpy", ev_memcpy},
    {"memset", ev_memset},
    {"kernel", ev_kernel},
    {"op", ev_op},
    {"event", ev_event},
    {"event-gone", ev_event_gone},
    {"shares-event", ev_shares_event},
    {"record", ev_record},
    {"stream-waits", ev_stream_waits},
    {"function", ev_function},
    {"begins", ev_begins},
    {"ends", ev_ends},
    {"capture", ev_capture},
    {"captured", ev_captured},
    {"instantiate", ev_instantiate},
    {"launch", ev_launch},
    {"graph-gone", ev_graph_gone},
    {"executable-gone", ev_executable_gone},
    {"join", ev_join},
    {"made", ev_made},
    {"makes-id", ev_makes_id},
    {"splits", ev_splits},
    {"register", ev_register},
    {"complete", ev_complete},
    {"destroy", ev_destroy},
    {"finalize", ev_finalize},
    {"abort", ev_abort},
    {"revoke", ev_revoke},
    {"put", ev_put},
    {"signal", ev_signal},
    {"deregister", ev_deregister},
    {"suspend", ev_suspend},
    {"resume", ev_resume},
    {"used-after", ev_used_after},
    {"used-before", ev_used_before},
    {"answered", ev_answered},
    {"group", ev_group},
    {"end-group", ev_end_group},
    {"fails", ev_fails},
    {"failed", ev_failed},
    {"returned", ev_returned},
    {"looked", ev_looked},
    {"wait", ev_wait},
    {"returns", ev_returns},
    {"gives-up", ev_gives_up},
    {"sync", ev_sync},
    {"query", ev_query},
    {"finish", ev_finish},
    {"exit", ev_exit},
    {"ends-job", ev_ends_job},
    {"thread-gone", ev_thread_gone},
    {"joins-thread", ev_joins_thread},
    {"broadcast", ev_broadcast},
    {"allreduce", ev_allreduce},
    {"reduce", ev_reduce},
    {"allgather", ev_allgather},
    {"reducescatter", ev_reducescatter},
    {"alltoall", ev_alltoall},
    {"gather", ev_gather},
    {"scatter", ev_scatter},
    {"send", ev_send},
    {"recv", ev_recv},
};

static void play_one(const struct event *e) {
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strcmp(events[i].word, e->words[0]) == 0) {
            judge_enter(e->judge, e->thread);
            judge_thread_name(e->judge, (uint64_t)e->thread);
            judge_thread_name(e->judge, (uint64_t)e->thread);
            events[i].play(e);
            judge_leave(e->judge);
            now += 1e-6;
            return;
        }
    die(e->line, "no such event: %s", e->words[0]);
}

/* Which ranks: "0", "1,3", "*", "last", "1-last", "even", "odd", "-0" (all but 0). */
static bool chosen(const char *text, int rank, int line) {
    if (strcmp(text, "*") == 0)
        return true;
    if (strcmp(text, "even") == 0 || strcmp(text, "odd") == 0)
        return rank % 2 == (text[0] == 'o');
    if (*text == '-')
        return !chosen(text + 1, rank, line);
    for (const char *at = text; *at; at += *at == ',') {
        long from = factor(&at, 0, line), to = from;
        if (*at == '-') {
            at++;
            to = factor(&at, 0, line);
        }
        if (rank >= from && rank <= to)
            return true;
    }
    return false;
}

static bool is_event(const char *line) {
    return isdigit((unsigned char)line[0]) || line[0] == '*' || line[0] == '-' ||
           strncmp(line, "last ", 5) == 0 || strncmp(line, "last/", 5) == 0 ||
           strncmp(line, "even ", 5) == 0 || strncmp(line, "odd ", 4) == 0;
}

/* `* comm c`: everybody joins, and then it is there; `* split …` likewise. */
static void play_line(int line);

static void play_text(int line, const char *text) {
    char copy[500], *save = NULL;
    struct event e = {.line = line, .thread = 1};
    snprintf(copy, sizeof copy, "%s", text);
    char *comment = strstr(copy, " #"), *tag = strrchr(copy, '@');
    if (comment)
        *comment = '\0';
    else if (tag && tag > copy && tag[-1] == ' ')
        *tag = '\0';
    char *who = strtok_r(copy, " ", &save);
    for (char *w; (w = strtok_r(NULL, " ", &save)) && e.nwords < WORDS;)
        e.words[e.nwords++] = w;
    char *thread = strchr(who, '/');
    if (thread) {
        *thread = '\0';
        e.thread = atoi(thread + 1);
    }
    if (e.nwords == 0)
        die(line, "does what?");
    static const char *const twice[][3] = {{"comm", "join", "made"},
                                           {"split", "splits", "made"}};
    int rounds = 1;
    const char *const *halves = NULL;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(e.words[0], twice[i][0]) == 0) {
            rounds = 2;
            halves = twice[i];
        }
    for (int round = 0; round < rounds; round++)
        for (int r = 0; r < n && !job_over; r++)
            if (chosen(who, r, line)) {
                if (halves)
                    e.words[0] = (char *)halves[round + 1];
                e.rank = r;
                e.judge = ranks[r].judge;
                play_one(&e);
            }
}

static void play_line(int line) {
    line_now = line;
    play_text(line, lines[line]);
}

struct the_case {
    char name[160];
    int first, last; // lines
    int from, to;    // ranks
    struct judge_options options;
    bool apart;
};

static int points, failures;

static int tagged(int first, int last, const char *name, size_t length) {
    for (int i = first; i <= last; i++) {
        const char *tag = strrchr(lines[i], '@');
        if (tag && strncmp(lines[i], "expect", 6) != 0 &&
            strncmp(lines[i], "but", 3) != 0 && strlen(tag + 1) == length &&
            strncmp(tag + 1, name, length) == 0)
            return i;
    }
    return 0;
}

/* The text that is expected: @tag is its line, {n*4} a number, ... anything. */
static void expand(const struct the_case *c, int line, const char *text, char *out,
                   size_t bytes) {
    size_t used = 0;
    while (*text && used + 40 < bytes) {
        if (*text == '@' && isalpha((unsigned char)text[1])) {
            size_t length = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
            int at = tagged(c->first, c->last, text + 1, length);
            if (!at)
                die(line, "nothing is tagged %.*s", (int)length + 1, text);
            used += (size_t)snprintf(out + used, bytes - used, "line %d", at);
            text += length + 1;
        } else if (*text == '{') {
            const char *at = text + 1;
            used += (size_t)snprintf(out + used, bytes - used, "%ld", sum(&at, 0, line));
            if (*at != '}')
                die(line, "no }");
            text = at + 1;
        } else {
            out[used++] = *text++;
        }
    }
    out[used] = '\0';
}

/* Whether `text` contains `what`, in which "..." is any text. */
static bool contains(const char *text, const char *what) {
    const char *gap = strstr(what, "...");
    if (!gap)
        return strstr(text, what) != NULL;
    char head[500];
    snprintf(head, sizeof head, "%.*s", (int)(gap - what), what);
    const char *at = strstr(text, head);
    return at && contains(at + strlen(head), gap + 3);
}

static bool reported(const char *what) {
    for (int i = 0; i < nreports; i++)
        if (contains(reports[i].text, what))
            return true;
    return false;
}

static void wrong(const struct the_case *c, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("# %s:%d, %d ranks: ", file, line, n);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    (void)c;
}

/* What a rank has left behind, which calls failed, and what it copied that nothing had
 * written: the words for it, and whom to ask. */
static const struct {
    const char *word;
    void (*ask)(struct judge *, char *, size_t);
} ends[] = {{"left", judge_left_behind},
            {"failures", judge_failures},
            {"unwritten", judge_unwritten}};
enum { ENDS = sizeof ends / sizeof *ends };

/* The end that a line asks for, after its rank; ENDS: none. */
static int end_of(const char *line) {
    char word[40] = "";
    int end = 0;
    sscanf(line, "%*s %39s", word);
    while (end < ENDS && strcmp(word, ends[end].word) != 0)
        end++;
    return end;
}

static bool check_ends(const struct the_case *c, int line, const char *text) {
    char what[500], found[2000], who[40];
    const int end = end_of(text);
    int used = 0;
    bool right = true;
    if (sscanf(text, "%39s %*s %n", who, &used) < 1 || used == 0)
        die(line, "left what?");
    expand(c, line, text + used, what, sizeof what);
    for (int r = 0; r < n; r++) {
        if (!chosen(who, r, line))
            continue;
        judge_enter(ranks[r].judge, 1);
        ends[end].ask(ranks[r].judge, found, sizeof found);
        judge_leave(ranks[r].judge);
        if (strcmp(what, "nothing") == 0 ? found[0] : strcmp(found, what) != 0) {
            wrong(c, line, "rank %d: \"%s\"", r, found);
            right = false;
        }
    }
    return right;
}

static bool ends_word(const char *line) {
    return end_of(line) < ENDS;
}

static bool play_case(const struct the_case *c, int nranks) {
    bool right = true, told = false, silent = false;
    int wanted = -1;
    char what[500];
    int loop_line = 0, loops = 0;
    clock_t begun = clock();
    apart = c->apart;
    start(nranks, &c->options);
    for (int i = c->first; i <= c->last && !job_over; i++) {
        const char *line = lines[i];
        if (is_event(line) && !ends_word(line)) {
            play_line(i);
        } else if (strncmp(line, "sleep ", 6) == 0) {
            pass(atof(line + 6));
        } else if (strncmp(line, "repeat ", 7) == 0) {
            loop_line = i;
            loops = atoi(line + 7);
            iteration = 0;
        } else if (strcmp(line, "again") == 0 && ++iteration < loops) {
            i = loop_line;
        }
    }
    // Then time passes, until nobody waits, or somebody says something.
    bool all_ended = true;
    for (int r = 0; r < n; r++)
        all_ended &= ranks[r].ended;
    double until = now + (all_ended ? 3 : 7 * c->options.timeout + 10);
    for (bool more = true; more && now < until && !job_over;) {
        now += 0.1;
        more = look();
    }
    double took = (double)(clock() - begun) / CLOCKS_PER_SEC;
    for (int i = c->first; i <= c->last; i++) {
        const char *line = lines[i];
        if (strncmp(line, "within ", 7) == 0 && took > atof(line + 7)) {
            wrong(c, i, "took %g s", took);
            right = false;
        } else if (strncmp(line, "expect ", 7) == 0) {
            told = true;
            expand(c, i, line + 7, what, sizeof what);
            if (!reported(what)) {
                wrong(c, i, "not reported: %s", what);
                right = false;
            }
        } else if (strncmp(line, "but ", 4) == 0) {
            expand(c, i, line + 4, what, sizeof what);
            if (reported(what)) {
                wrong(c, i, "reported: %s", what);
                right = false;
            }
        } else if (strcmp(line, "silent") == 0) {
            silent = true;
        } else if (strncmp(line, "reports ", 8) == 0) {
            wanted = atoi(line + 8);
        } else if (is_event(line) && ends_word(line)) {
            right &= check_ends(c, i, line);
            told = true;
        }
    }
    if (!told && !silent && wanted < 0)
        die(c->first, "nothing is expected");
    if (wanted < 0 && silent)
        wanted = 0;
    if (wanted >= 0 && nreports != wanted) {
        wrong(c, c->first, "%d reports", nreports);
        right = false;
    }
    for (int i = 0; i < nreports && !right && !verbose; i++)
        printf("# rank %d: %s", reports[i].rank, reports[i].text);
    stop();
    return right;
}

static void play_ranks(const struct the_case *c) {
    bool right = true;
    for (int ranks_now = c->from; ranks_now <= c->to && right; ranks_now++)
        if (ranks_now == c->from || strchr(counts, '0' + ranks_now))
            right = play_case(c, ranks_now);
    points++;
    failures += !right;
    printf("%sok %d - %s: %s\n", right ? "" : "not ", points, file, c->name);
}

/* "2-8", "1" */
static void read_ranks(const char *text, struct the_case *c) {
    int count = sscanf(text, "%d-%d", &c->from, &c->to);
    c->to = count == 1 ? c->from : c->to;
}

/* Lines that set something, at the head of a file for all its cases. */
static void read_setting(const char *line, struct the_case *c) {
    if (strncmp(line, "ranks ", 6) == 0)
        read_ranks(line + 6, c);
    else if (strcmp(line, "warn") == 0)
        c->options.mode = JUDGE_WARN;
    else if (strcmp(line, "off") == 0)
        c->options.mode = JUDGE_OFF;
    else if (strcmp(line, "kernels") == 0)
        c->options.kernels = true;
    else if (strcmp(line, "unseen") == 0)
        c->options.unseen = true;
    else if (strcmp(line, "apart") == 0)
        c->apart = true;
    else if (strncmp(line, "timeout ", 8) == 0)
        c->options.timeout = atof(line + 8);
}

static bool is_setting(const char *line) {
    static const char *const known[] = {"ranks ",  "timeout ", "warn", "off",
                                        "kernels", "unseen",   "apart"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(line, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

static void check_line(int i) {
    static const char *const known[] = {"case ",  "expect ", "but ",
                                        "silent", "sleep ",  "repeat ",
                                        "again",  "within ", "reports "};
    bool right = lines[i][0] == '\0' || lines[i][0] == '#' || is_event(lines[i]) ||
                 is_setting(lines[i]);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        right |= strncmp(lines[i], known[k], strlen(known[k])) == 0;
    if (!right)
        die(i, "what is that? %s", lines[i]);
}

static void play_file(const char *path, const char *only) {
    struct the_case all = {.from = 2, .to = 8, .options = {JUDGE_ON, 30, false, false}},
                    c = all;
    read_file(path);
    for (int i = 1; i <= nlines; i++)
        check_line(i);
    for (int i = 1; i <= nlines; i++) {
        if (strncmp(lines[i], "case ", 5) != 0) {
            read_setting(lines[i], &all);
            continue;
        }
        c = all;
        snprintf(c.name, sizeof c.name, "%s", lines[i] + 5);
        c.first = i + 1;
        while (i < nlines && strncmp(lines[i + 1], "case ", 5) != 0)
            read_setting(lines[++i], &c);
        c.last = i;
        if (!only || strstr(c.name, only))
            play_ranks(&c);
    }
    forget_file();
}

int main(int argc, char **argv) {
    int first = 1;
    const char *only = NULL;
    if (argc > 2 && strcmp(argv[1], "-v") == 0) {
        verbose = true;
        first = 2;
        if (argc > 3) {
            only = argv[3];
            argc = 3;
        }
    }
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        counts = argv[2];
        first = 3;
    }
    for (int i = first; i < argc; i++)
        play_file(argv[i], only);
    printf("1..%d\n", points);
    free(lines);
    free(reports);
    free(link);
    return failures > 0;
}
