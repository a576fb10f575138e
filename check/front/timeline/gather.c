/*
 * gather.c: how rank 0 gets the notes of all ranks, and writes the file.
 */
#define _GNU_SOURCE
#include "timeline.h"

#include "places.h"
#include "tracks.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char file[PATH_MAX]; // "": this rank was given none
static int rank, nranks = 1;
static char host[JUDGE_HOST];

static MPI_Comm ours = MPI_COMM_NULL;
static struct offset { // of this machine's clock from rank 0's
    double when, seconds;
} at_start, at_end;

/* Machines that have started at the same time are one: their processes have one clock. */
static bool is_far(void) {
    char id[64] = "", first[64];
    FILE *in = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (in && !fgets(id, sizeof id, in))
        id[0] = '\0';
    if (in)
        fclose(in);
    memcpy(first, id, sizeof id);
    PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, ours);
    return !clock_name() && strcmp(first, id) != 0;
}

/* Rank 0 says what time it is; the quickest answer is the most exact. */
static struct offset measure_offset(void) {
    enum { ROUNDS = 20, TAG = 1 };
    struct offset best = {host_time(), 0};
    double shortest = 1e9, zero;
    int far = is_far();
    int *all = must_alloc((size_t)nranks * sizeof *all);
    PMPI_Gather(&far, 1, MPI_INT, all, 1, MPI_INT, 0, ours);
    for (int other = 1; rank == 0 && other < nranks; other++)
        for (int i = 0; all[other] && i < ROUNDS; i++) {
            PMPI_Recv(NULL, 0, MPI_BYTE, other, TAG, ours, MPI_STATUS_IGNORE);
            zero = host_time();
            PMPI_Send(&zero, 1, MPI_DOUBLE, other, TAG, ours);
        }
    for (int i = 0; far && i < ROUNDS; i++) {
        double before = host_time();
        PMPI_Send(NULL, 0, MPI_BYTE, 0, TAG, ours);
        PMPI_Recv(&zero, 1, MPI_DOUBLE, 0, TAG, ours, MPI_STATUS_IGNORE);
        double after = host_time();
        if (after - before < shortest) {
            shortest = after - before;
            best = (struct offset){(before + after) / 2, (before + after) / 2 - zero};
        }
    }
    free(all);
    return best;
}

static double by_rank_0(double time) {
    double length = at_end.when - at_start.when;
    double drift = length > 1 ? (at_end.seconds - at_start.seconds) / length : 0;
    return time - at_start.seconds - drift * (time - at_start.when);
}

static struct trace_part make_part(void) {
    struct trace_part part = tracks_part(by_rank_0);
    part.rank = rank;
    memcpy(part.host, host, sizeof part.host);
    return part;
}

static void free_part(struct trace_part *part) {
    free(part->notes);
    free(part->tracks);
}

/* The file is there in whole or not at all. What is no file, a pipe or /dev/null, is
 * written to, and stays what it is. */
static void write_file(struct trace_part *parts, int n) {
    char part[PATH_MAX + 32], clock[128] = "times are measured", *text = NULL;
    const char *machine = clock_name();
    size_t bytes = 0;
    bool lost = false;
    struct stat there;
    FILE *memory = open_memstream(&text, &bytes);
    if (machine)
        snprintf(clock, sizeof clock, "times are modelled on %s", machine);
    if (memory) {
        trace_write(memory, parts, n, clock, places_of);
        fclose(memory);
    }
    // A link to a file stays a link.
    char *real = realpath(file, NULL);
    const char *to = real ? real : file;
    bool at_once = stat(to, &there) == 0 && !S_ISREG(there.st_mode);
    if (at_once)
        snprintf(part, sizeof part, "%s", to);
    else
        snprintf(part, sizeof part, "%s.%d", to, (int)getpid());
    FILE *out = memory ? fopen(part, "w") : NULL;
    bool opened = out;
    bool written = opened && fwrite(text, 1, bytes, out) == bytes;
    written = opened && fclose(out) == 0 && written;
    if (!written || (!at_once && rename(part, to) != 0)) {
        fprintf(stderr, "NCCL TIMELINE: cannot write %s: %s\n", file, strerror(errno));
        if (opened && !at_once)
            unlink(part);
    }
    free(real);
    free(text);
    for (int p = 0; p < n; p++)
        lost |= parts[p].lost > 0;
    if (lost)
        fprintf(stderr,
                "NCCL TIMELINE: %s has the first %d operations of a rank, and no more\n",
                file, MOST_NOTES);
}

/* The parts of other ranks come in one piece. */
enum { ASKED = 3, PART = 4 };

static char *pack(const struct trace_part *part, int *bytes) {
    size_t tracks_bytes = part->ntracks * sizeof *part->tracks;
    size_t notes_bytes = part->nnotes * sizeof *part->notes;
    char *data = must_alloc(sizeof *part + tracks_bytes + notes_bytes);
    memcpy(data, part, sizeof *part);
    memcpy(data + sizeof *part, part->tracks, tracks_bytes);
    memcpy(data + sizeof *part + tracks_bytes, part->notes, notes_bytes);
    *bytes = (int)(sizeof *part + tracks_bytes + notes_bytes);
    return data;
}

static struct trace_part unpack(const char *data) {
    struct trace_part part;
    memcpy(&part, data, sizeof part);
    size_t tracks_bytes = part.ntracks * sizeof *part.tracks;
    size_t notes_bytes = part.nnotes * sizeof *part.notes;
    part.tracks = must_alloc(tracks_bytes + 1);
    part.notes = must_alloc(notes_bytes + 1);
    memcpy(part.tracks, data + sizeof part, tracks_bytes);
    memcpy(part.notes, data + sizeof part + tracks_bytes, notes_bytes);
    return part;
}

static void send_part(const struct trace_part *part, int to) {
    int bytes;
    char *data = pack(part, &bytes);
    PMPI_Send(data, bytes, MPI_BYTE, to, PART, ours);
    free(data);
}

/* From anybody. False: nothing has come. */
static bool receive_part(struct trace_part *part) {
    MPI_Message message;
    MPI_Status status;
    int there, bytes;
    PMPI_Improbe(MPI_ANY_SOURCE, PART, ours, &there, &message, &status);
    if (!there)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    char *data = must_alloc((size_t)bytes + 1);
    PMPI_Mrecv(data, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    *part = unpack(data);
    free(data);
    return true;
}

static int compare_ranks(const void *a, const void *b) {
    const struct trace_part *x = a, *y = b;
    return x->rank - y->rank;
}

/* This rank's part and those of others, as far as they come in so many seconds; 0: all
 * will come. */
static void write_parts(struct trace_part *mine, double patience) {
    struct trace_part *parts = must_alloc((size_t)nranks * sizeof *parts);
    int n = 1;
    parts[0] = *mine;
    for (double until = real_time() + patience;
         n < nranks && (patience == 0 || real_time() < until);)
        if (receive_part(&parts[n]))
            n++;
        else
            nap();
    qsort(parts, (size_t)n, sizeof *parts, compare_ranks);
    write_file(parts, n);
    for (int i = 0; i < n; i++)
        if (parts[i].notes != mine->notes)
            free_part(&parts[i]);
    free(parts);
}

/* It is written once, by whichever comes first. */
static atomic_bool end_begun;

static bool begin_end(void) {
    return (timeline_on & TIMELINE_FILE) && !atomic_exchange(&end_begun, true);
}

void timeline_gather(void) {
    if (ours == MPI_COMM_NULL || !begin_end())
        return;
    front_depth++;
    if (OVER_STANDIN)
        STANDIN(host_blocks)(1);
    tracks_read_all(0.2);
    tracks_measure_rates();
    at_end = measure_offset();
    struct trace_part part = make_part();
    if (rank == 0 && file[0])
        write_parts(&part, 0);
    else if (rank > 0)
        send_part(&part, 0);
    free_part(&part);
    PMPI_Barrier(ours); // the file is there when a rank goes on
    PMPI_Comm_free(&ours);
    if (OVER_STANDIN)
        STANDIN(host_blocks)(0);
    front_depth--;
}

/* Beside the file; processes that the same launcher has started belong together. */
static void name_part(char name[PATH_MAX + 64], int of) {
    snprintf(name, PATH_MAX + 64, "%s.part-%d-%d", file, (int)getppid(), of);
}

static void leave_part(const struct trace_part *part) {
    char name[PATH_MAX + 64], unfinished[PATH_MAX + 72];
    int bytes;
    char *data = pack(part, &bytes);
    name_part(name, rank);
    snprintf(unfinished, sizeof unfinished, "%s.new", name);
    FILE *out = fopen(unfinished, "w");
    bool written = out && fwrite(data, 1, (size_t)bytes, out) == (size_t)bytes;
    written = out && fclose(out) == 0 && written;
    if (!written || rename(unfinished, name) != 0)
        fprintf(stderr, "NCCL TIMELINE: cannot write %s: %s\n", name, strerror(errno));
    free(data);
}

static bool take_part(int of, struct trace_part *part) {
    char name[PATH_MAX + 64];
    struct stat there;
    name_part(name, of);
    FILE *in = fopen(name, "r");
    if (!in)
        return false;
    fstat(fileno(in), &there);
    char *data = must_alloc((size_t)there.st_size + sizeof *part);
    bool whole = fread(data, 1, (size_t)there.st_size, in) == (size_t)there.st_size;
    fclose(in);
    unlink(name);
    if (whole)
        *part = unpack(data);
    free(data);
    return whole;
}

/* As torchrun says; without it, all ranks are here. */
static int said(const char *name, int otherwise) {
    return getenv(name) && getenv("LOCAL_WORLD_SIZE") ? atoi(getenv(name)) : otherwise;
}

/* Of each machine the first rank writes a file, since nobody compares their clocks: the
 * one that was asked for, and others with the machine's name at the end. */
void timeline_gather_by_files(int world, int n) {
    static const double PATIENCE = 10; // seconds that the ranks may end apart
    const int first = world - said("LOCAL_RANK", world),
              local = said("LOCAL_WORLD_SIZE", n), here = local > 1 ? local : 1;
    if (!begin_end() || !file[0])
        return;
    front_depth++;
    rank = world;
    nranks = n;
    if (said("GROUP_RANK", 0) > 0 && strlen(file) + strlen(host) + 1 < sizeof file) {
        strcat(file, ".");
        strcat(file, host);
    }
    tracks_read_all(0.2);
    tracks_measure_rates();
    struct trace_part part = make_part(),
                      *parts = must_alloc((size_t)here * sizeof *parts);
    int come = 1;
    parts[0] = part;
    if (rank > first)
        leave_part(&part);
    for (double until = real_time() + PATIENCE;
         rank == first && come < here && real_time() < until; nap())
        for (int other = first + 1; other < first + here; other++)
            come += take_part(other, &parts[come]);
    if (rank == first) {
        qsort(parts, (size_t)come, sizeof *parts, compare_ranks);
        write_file(parts, come);
    }
    for (int i = 0; i < come; i++)
        free_part(&parts[i]);
    free(parts);
    front_depth--;
}

void timeline_alone(void) {
    if (!notes.n || !begin_end() || !file[0]) // a child that has nothing to do with it
        return;
    front_depth++;
    tracks_read_all(0.2);
    tracks_measure_rates();
    struct trace_part part = make_part();
    write_file(&part, 1);
    free_part(&part);
    front_depth--;
}

static void read_at_end(double patience) {
    tracks_go_to_first();
    tracks_read_all(patience);
}

/* CUDA may be what hangs. */
static void *read_at_death(void *read) {
    front_depth = 1;
    read_at_end(0.05);
    atomic_store((atomic_bool *)read, true);
    return NULL;
}

void timeline_dies(bool ask) {
    static atomic_bool read;
    pthread_t thread;
    if (!notes.n || !begin_end() || !file[0])
        return;
    front_depth++;
    for (int other = 0; ask && ours != MPI_COMM_NULL && other < nranks; other++) {
        MPI_Request request;
        if (other == rank)
            continue;
        PMPI_Isend(NULL, 0, MPI_BYTE, other, ASKED, ours, &request);
        PMPI_Request_free(&request);
    }
    if (pthread_create(&thread, NULL, read_at_death, &read) == 0)
        pthread_detach(thread);
    for (double until = real_time() + 1; real_time() < until && !atomic_load(&read);)
        nap();
    pthread_mutex_lock(&notes_lock);
    struct trace_part part = make_part();
    pthread_mutex_unlock(&notes_lock);
    write_parts(&part, ask && ours != MPI_COMM_NULL ? 0.5 : 1e-9);
    front_depth--;
}

void timeline_asked(void) {
    int there = 0;
    MPI_Status status;
    if (ours == MPI_COMM_NULL || atomic_load(&end_begun))
        return;
    PMPI_Iprobe(MPI_ANY_SOURCE, ASKED, ours, &there, &status);
    if (!there)
        return;
    PMPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, ASKED, ours, MPI_STATUS_IGNORE);
    read_at_end(0);
    pthread_mutex_lock(&notes_lock);
    struct trace_part part = make_part();
    pthread_mutex_unlock(&notes_lock);
    send_part(&part, status.MPI_SOURCE);
    free_part(&part);
}

void timeline_start(void) {
    const char *name = getenv("NCCL_TIMELINE");
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    if (!OVER_STANDIN && getenv("NVTX_INJECTION64_PATH"))
        timeline_on |= TIMELINE_RANGES;
    if (!name || !name[0])
        return;
    timeline_on |= TIMELINE_FILE;
    // The program may go to another folder.
    char *folder = name[0] == '/' ? NULL : getcwd(NULL, 0);
    if (folder)
        snprintf(file, sizeof file, "%s/%s", folder, name);
    else
        snprintf(file, sizeof file, "%s", name);
    free(folder);
}

void timeline_world(int world, int n, const char *name, int on) {
    rank = world;
    nranks = n;
    snprintf(host, sizeof host, "%s", name);
    timeline_on = (timeline_on & ~TIMELINE_FILE) | (on & TIMELINE_FILE);
    if (!(timeline_on & TIMELINE_FILE))
        return;
    PMPI_Comm_dup(MPI_COMM_WORLD, &ours);
    PMPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
    at_start = measure_offset();
}

void timeline_forked(void) {
    timeline_on = 0;
}
