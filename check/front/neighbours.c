/*
 * neighbours.c: what the processes of one machine share: who of them speaks for all, and
 * what each of them leaves behind.
 *
 * Their memory has no name any more when the program runs: nothing to clean up, and no
 * process waits.
 */
#define _GNU_SOURCE
#include "neighbours.h"

#include "front.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEFT = 4096 };
static struct shared {
    atomic_int said[NEIGHBOURS_WORDS]; // by somebody
    atomic_int here, ended;            // processes
    struct {
        int rank;
        char left[LEFT], failed[LEFT];
    } of[];
} * shared;
static int my_place; // among the processes of the machine

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
    size_t bytes = sizeof *shared + (size_t)n * sizeof shared->of[0];
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Barrier(machine);
    front_depth++; // not the program's
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    front_depth--;
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    PMPI_Barrier(machine);
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Comm_free(&machine);
    if (memory == MAP_FAILED)
        return;
    shared = memory;
    shared->of[my_place].rank = rank;
    atomic_fetch_add(&shared->here, 1);
}

/* --- Who speaks ---------------------------------------------------------------- */

bool neighbours_first(enum neighbours_word word, bool alone) {
    return shared ? atomic_exchange(&shared->said[word], 1) == 0 : alone;
}

double neighbours_turn(int rank, int nranks) {
    int here = shared ? atomic_load(&shared->here) : 0;
    if (here == 0 || here >= nranks || my_place >= rank)
        return 0;
    return rank / here < 5 ? rank / here : 5;
}

/* --- What is left behind ------------------------------------------------------- */

static void print_shared(bool failed, const char *title, const char *hint) {
    bool any = false;
    int n = atomic_load(&shared->here);
    for (int i = 0; i < n; i++) {
        char *mine = failed ? shared->of[i].failed : shared->of[i].left;
        if (!mine[0])
            continue;
        if (!any)
            fprintf(stderr, "NCCL CHECK: %s\n", title);
        any = true;
        int nsame = 0;
        for (int k = i; k < n; k++)
            nsame +=
                strcmp(mine, failed ? shared->of[k].failed : shared->of[k].left) == 0;
        fprintf(stderr, "  rank%s %d", nsame > 1 ? "s" : "", shared->of[i].rank);
        for (int k = i + 1; k < n; k++) {
            char *other = failed ? shared->of[k].failed : shared->of[k].left;
            if (strcmp(mine, other) == 0) {
                fprintf(stderr, ", %d", shared->of[k].rank);
                other[0] = '\0';
            }
        }
        fprintf(stderr, ": %s\n", mine);
    }
    if (any)
        fprintf(stderr, "  Hint: %s\n", hint);
}

void neighbours_end(void) {
    if (!shared) {
        shared = calloc(1, sizeof *shared + sizeof shared->of[0]);
        if (!shared)
            return;
        atomic_store(&shared->here, 1);
    }
    struct judge *j = front_in();
    judge_left_behind(j, shared->of[my_place].left, LEFT);
    judge_unlooked(j, shared->of[my_place].failed, LEFT);
    front_leave();
    if (atomic_fetch_add(&shared->ended, 1) + 1 < atomic_load(&shared->here))
        return;
    print_shared(
        false, "left behind: the program ends and has not released",
        "what was made is released in reverse order: cudaFree, cudaStreamDestroy,"
        " ncclCommDestroy.");
    print_shared(
        true, "failed: the program ends well, though calls failed and it never asked why",
        "every call of CUDA and NCCL returns whether it went well; look at it, and ask"
        " cudaGetLastError,\n        ncclGetLastError.");
    fflush(stderr);
}
