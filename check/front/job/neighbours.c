/*
 * neighbours.c: what the processes of one machine share: who of them speaks for all, and
 * what each of them leaves behind.
 *
 * Their memory has no name any more when the program runs: nothing to clean up, and no
 * process waits.
 */
#define _GNU_SOURCE
#include "neighbours.h"

#include "enter.h"
#include "python.h"
#include "say/text.h"

#include <stdio.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 4096, KEYS = 256 };
static struct shared {
    atomic_int said[NEIGHBOURS_WORDS]; // by somebody
    struct {
        atomic_ullong key; // of what is said, and goes on
        atomic_bool said;
    } keys[KEYS];
    atomic_ullong aborted[KEYS], aborted_at[KEYS]; // communicators
    atomic_int here, ended;                        // processes
    struct {
        int rank;
        char words[JUDGE_LAST_WORDS][WORDS];
    } of[];
} * shared;
static int my_place; // among the processes of the machine

static void open_shared(const char *name, int n) {
    size_t bytes = sizeof *shared + (size_t)n * sizeof shared->of[0];
    front_depth++; // not the program's
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    front_depth--;
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (memory != MAP_FAILED)
        shared = memory;
}

void neighbours_share(void) {
    MPI_Comm machine;
    int n, first, rank;
    char name[64];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                         &machine);
    PMPI_Comm_rank(machine, &my_place);
    PMPI_Comm_size(machine, &n);
    first = (int)getpid();
    PMPI_Bcast(&first, 1, MPI_INT, 0, machine);
    snprintf(name, sizeof name, "/nccl-check-%d-%d", (int)getuid(), first);
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Barrier(machine);
    open_shared(name, n);
    PMPI_Barrier(machine);
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Comm_free(&machine);
    if (!shared)
        return;
    shared->of[my_place].rank = rank;
    atomic_fetch_add(&shared->here, 1);
}

static char over_tcp[64];

void neighbours_share_over_tcp(uint64_t job, int rank, int nranks) {
    enum { ROUNDS = 100 }; // after so many all have opened it
    static int rounds;
    if (rounds++ == ROUNDS)
        neighbours_need_no_name();
    if (rounds > 1)
        return;
    snprintf(over_tcp, sizeof over_tcp, "/nccl-check-%d-%llx", (int)getuid(),
             (unsigned long long)job);
    open_shared(over_tcp, nranks);
    if (!shared)
        return;
    my_place = atomic_fetch_add(&shared->here, 1);
    shared->of[my_place].rank = rank;
}

void neighbours_need_no_name(void) {
    if (over_tcp[0])
        shm_unlink(over_tcp);
    over_tcp[0] = '\0';
}

bool neighbours_first(enum neighbours_word word, bool alone) {
    return shared ? atomic_exchange(&shared->said[word], 1) == 0 : alone;
}

bool neighbours_new(uint64_t key) {
    for (int i = 0; shared && key && i < KEYS; i++) {
        unsigned long long known = 0;
        if (atomic_compare_exchange_strong(&shared->keys[i].key, &known, key))
            return true;
        if (known == key)
            return false;
    }
    return true;
}

bool neighbours_said(uint64_t key, bool now) {
    for (int i = 0; shared && key && i < KEYS; i++)
        if (atomic_load(&shared->keys[i].key) == key)
            return now ? (atomic_store(&shared->keys[i].said, true), true)
                       : atomic_load(&shared->keys[i].said);
    return true;
}

uint64_t neighbours_aborted(void *self, uint64_t comm, uint64_t site) {
    (void)self;
    size_t i = comm % KEYS;
    if (shared && site) {
        shared->aborted_at[i] = site;
        shared->aborted[i] = comm;
    }
    return shared && shared->aborted[i] == comm ? shared->aborted_at[i] : 0;
}

double neighbours_turn(int rank, int nranks) {
    int here = shared ? atomic_load(&shared->here) : 0;
    if (here == 0 || here >= nranks || my_place >= rank)
        return 0;
    return rank / here < 5 ? rank / here : 5;
}

/* A line for all ranks that have the same words: "ranks 0, 2: …". */
static void add_lines(struct text *lines, enum judge_last_words what) {
    int n = atomic_load(&shared->here);
    for (int i = 0; i < n; i++) {
        const char *mine = shared->of[i].words[what];
        if (!mine[0])
            continue;
        int nsame = 0;
        for (int k = i; k < n; k++)
            nsame += strcmp(mine, shared->of[k].words[what]) == 0;
        text_add(lines, "  rank%s %d", nsame > 1 ? "s" : "", shared->of[i].rank);
        for (int k = i + 1; k < n; k++) {
            char *other = shared->of[k].words[what];
            if (strcmp(mine, other) == 0) {
                text_add(lines, ", %d", shared->of[k].rank);
                other[0] = '\0';
            }
        }
        text_add(lines, ": %s\n", mine);
    }
}

static bool all_say_the_same(enum judge_last_words what) {
    int n = atomic_load(&shared->here);
    for (int i = 1; i < n; i++)
        if (strcmp(shared->of[0].words[what], shared->of[i].words[what]) != 0)
            return false;
    return true;
}

/* One line for all of them. */
static void add_failed(struct text *line) {
    int n = atomic_load(&shared->here);
    for (int i = 0; i < n; i++) {
        const char *mine = shared->of[i].words[JUDGE_CALLS_FAILED];
        if (mine[0])
            text_add(line, "%srank %d: %s", line->at ? "; " : "", shared->of[i].rank,
                     mine);
    }
}

/* (Before MPI has started a process is alone.) */
static bool is_shared(void) {
    if (!shared) {
        shared = calloc(1, sizeof *shared + sizeof shared->of[0]);
        if (shared)
            atomic_store(&shared->here, 1);
    }
    return shared;
}

void neighbours_fails(void) {
    char words[WORDS];
    struct text line = {0};
    struct judge *j = front_in();
    judge_failures(j, words, sizeof words);
    if (words[0] && is_shared() && neighbours_first(NEIGHBOURS_FAILS, true))
        text_add(&line, "rank %d: %s", shared->of[my_place].rank, words);
    judge_says_last(j, JUDGE_CALLS_FAILED, &line);
    front_leave();
}

void neighbours_end(void) {
    if (!is_shared())
        return;
    struct judge *j = front_in();
    if (!python_there()) // PyTorch keeps its memory, streams and events to the end
        judge_left_behind(j, shared->of[my_place].words[JUDGE_LEFT_BEHIND], WORDS);
    judge_failures(j, shared->of[my_place].words[JUDGE_CALLS_FAILED], WORDS);
    if (!front_timed)
        judge_unwritten(j, shared->of[my_place].words[JUDGE_UNWRITTEN], WORDS);
    if (atomic_fetch_add(&shared->ended, 1) + 1 == atomic_load(&shared->here)) {
        struct text words[JUDGE_LAST_WORDS] = {{0}};
        if (all_say_the_same(JUDGE_UNWRITTEN))
            add_lines(&words[JUDGE_UNWRITTEN], JUDGE_UNWRITTEN);
        add_lines(&words[JUDGE_LEFT_BEHIND], JUDGE_LEFT_BEHIND);
        add_failed(&words[JUDGE_CALLS_FAILED]);
        for (int what = 0; what < JUDGE_LAST_WORDS; what++)
            judge_says_last(j, (enum judge_last_words)what, &words[what]);
    }
    front_leave();
}
