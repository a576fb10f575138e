/*
 * missing.c names those who do not come. MPI starts when all processes of the job are in
 * its start. A program that uses no MPI gets there by its first communicator, and a
 * process that makes none leaves the others waiting; MPI says nothing then.
 *
 * Each process that waits holds a socket with its rank in its name. Of a name that nobody
 * holds, the process is missing, or on another machine.
 */
#define _GNU_SOURCE
#include "start/missing.h"

#include "start/join.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static int my_rank, all_ranks, mine = -1;
static atomic_bool over;

/* The name of a rank's socket, among those that were started together. */
static uint64_t socket_of(int rank) {
    char name[300];
    const char *job = getenv("PMIX_NAMESPACE");
    snprintf(name, sizeof name, "%s %d %d", job ? job : "", job ? 0 : (int)getppid(),
             rank);
    return join_number(name);
}

static bool waits(int rank) {
    int other = join_connect(socket_of(rank));
    if (other >= 0)
        close(other);
    return other >= 0;
}

static void say(void) {
    enum { MOST = 10 };
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    int first = -1, n = 0, missing = 0;
    char ranks[16 * MOST] = "";
    for (int rank = 0; rank < all_ranks; rank++) {
        if (waits(rank)) {
            first = first < 0 ? rank : first;
            n++;
        } else if (missing++ < MOST) {
            size_t length = strlen(ranks);
            snprintf(ranks + length, sizeof ranks - length, " %d", rank);
        }
    }
    if (first != my_rank || missing == 0)
        return;
    fprintf(stderr,
            "CPU build: %d of %d processes wait in ncclCommInitRank; missing%s:%s%s\n"
            "  In a program without MPI_Init, all processes that a launcher has"
            " started together must make a communicator before any of them has one.\n",
            n, all_ranks, here && atoi(here) < all_ranks ? ", or on other machines" : "",
            ranks, missing > MOST ? " …" : "");
}

static void *watch(void *unused) {
    (void)unused;
    usleep((useconds_t)(base_patience() * 1e6));
    if (!over)
        say();
    return NULL;
}

void missing_wait_begins(int rank, int nranks) {
    pthread_t thread;
    my_rank = rank;
    all_ranks = nranks;
    mine = join_listen(socket_of(rank));
    if (mine >= 0 && pthread_create(&thread, NULL, watch, NULL) == 0) {
        pthread_setname_np(thread, "nccl-cpu"); // not the program's own
        pthread_detach(thread);
    }
}

void missing_wait_ends(void) {
    over = true;
    if (mine >= 0)
        close(mine);
}
