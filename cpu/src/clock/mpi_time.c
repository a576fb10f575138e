/*
 * mpi_time.c has how MPI's calls bring the modelled times of the ranks' hosts together.
 *
 * Beside each message of the program goes one with its sender's time, and beside each
 * collective call one of the same kind: who gets data from others is not earlier than
 * they were. So nobody waits for anybody whom the program does not wait for. The messages
 * go on communicators of their own, one for each of the program's.
 *
 * Left out: one-sided communication, files, intercommunicators, what is probed.
 */
#include "clock/mpi_time.h"
#include "standin.h"

#include "base/base.h"
#include "clock/clock.h"

static int key = MPI_KEYVAL_INVALID; // of a communicator: its shadow

static int forget(MPI_Comm comm, int unused, void *shadow, void *state) {
    (void)comm;
    (void)unused;
    (void)state;
    PMPI_Comm_free(shadow);
    free(shadow);
    return MPI_SUCCESS;
}

static bool is_inter(MPI_Comm comm) {
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

void standin_mpi_made(MPI_Comm comm) {
    if (!clock_on || key == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL || is_inter(comm))
        return;
    MPI_Comm *shadow = base_alloc(sizeof *shadow);
    PMPI_Comm_dup(comm, shadow);
    PMPI_Comm_set_attr(comm, key, shadow);
}

void mpi_time_open(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    standin_mpi_made(MPI_COMM_WORLD);
}

static bool shadow_of(MPI_Comm comm, MPI_Comm *out) {
    MPI_Comm *shadow;
    int found = 0;
    if (!clock_on || key == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL)
        return false;
    PMPI_Comm_get_attr(comm, key, (void *)&shadow, &found);
    if (found)
        *out = *shadow;
    return found;
}

/* --- Times that are under way ----------------------------------------------------- */

struct time { // of this rank, or of another
    struct time *next;
    MPI_Request request;
    double mine, theirs;
    MPI_Request of; // the program's request that it goes with
    double cost;
};
static struct time *sent, *awaited;

static void collect(void) {
    for (struct time **at = &sent; *at;) {
        struct time *time = *at;
        int done;
        PMPI_Test(&time->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            at = &time->next;
            continue;
        }
        *at = time->next;
        free(time);
    }
}

void mpi_time_close(void) {
    if (!clock_on || key == MPI_KEYVAL_INVALID)
        return;
    LOCKED;
    collect();
    key = MPI_KEYVAL_INVALID; // what MPI_Finalize frees, it frees by itself
}

static void reached(double theirs, double cost) {
    LOCKED;
    clock_host_spends(cost);
    if (theirs + cost > clock_host())
        clock_host_spends(theirs + cost - clock_host());
}

/* --- Messages --------------------------------------------------------------------- */

void standin_mpi_sends(int dest, int tag, MPI_Comm comm) {
    MPI_Comm shadow;
    if (dest < 0 || !shadow_of(comm, &shadow))
        return;
    LOCKED;
    collect();
    clock_host_spends(clock_mpi(2));
    struct time *time = base_alloc(sizeof *time);
    time->mine = clock_host();
    PMPI_Isend(&time->mine, 1, MPI_DOUBLE, dest, tag, shadow, &time->request);
    time->next = sent;
    sent = time;
}

static struct time *await(MPI_Request of, double cost) {
    struct time *time = base_alloc(sizeof *time);
    time->of = of;
    time->cost = cost;
    time->next = awaited;
    awaited = time;
    return time;
}

static struct time *post(int source, int tag, MPI_Comm comm, MPI_Request of) {
    MPI_Comm shadow;
    if (source == MPI_PROC_NULL || !shadow_of(comm, &shadow))
        return NULL;
    struct time *time = await(of, 0);
    PMPI_Irecv(&time->theirs, 1, MPI_DOUBLE, source, tag, shadow, &time->request);
    return time;
}

/* Its message, or call, has come: so has, or will soon, what goes with it. */
static void take(MPI_Request of) {
    struct time *time;
    {
        LOCKED;
        struct time **at = &awaited;
        while (*at && (*at)->of != of)
            at = &(*at)->next;
        time = *at;
        if (!time)
            return;
        *at = time->next;
    }
    PMPI_Wait(&time->request, MPI_STATUS_IGNORE);
    reached(time->theirs, time->cost);
    free(time);
}

/* A blocking receive gets a request of its own kind, by which it is found again. */
void standin_mpi_receives(int source, int tag, MPI_Comm comm, MPI_Request *request) {
    if (!clock_on)
        return;
    if (*request != MPI_REQUEST_NULL) {
        take(*request);
        return;
    }
    LOCKED;
    struct time *time = post(source, tag, comm, MPI_REQUEST_NULL);
    if (time)
        *request = time->of = time->request;
}

void standin_mpi_posts(int source, int tag, MPI_Comm comm, MPI_Request request) {
    if (!clock_on)
        return;
    LOCKED;
    post(source, tag, comm, request);
}

/* --- Collective calls ------------------------------------------------------------- */

static double cost_of(MPI_Comm comm) {
    int n;
    PMPI_Comm_size(comm, &n);
    LOCKED;
    return clock_mpi(n);
}

void standin_mpi_meets(MPI_Comm comm, int way, int root) {
    if (!clock_on || comm == MPI_COMM_NULL || is_inter(comm))
        return;
    double cost = cost_of(comm), theirs = clock_host(), mine = theirs;
    if (way == MEET_FROM_ROOT)
        PMPI_Bcast(&theirs, 1, MPI_DOUBLE, root, comm);
    else if (way == MEET_AT_ROOT)
        PMPI_Reduce(&mine, &theirs, 1, MPI_DOUBLE, MPI_MAX, root, comm);
    else
        PMPI_Allreduce(&mine, &theirs, 1, MPI_DOUBLE, MPI_MAX, comm);
    reached(theirs, cost);
}

void standin_mpi_begins(MPI_Comm comm, int way, int root, MPI_Request request) {
    if (!clock_on || comm == MPI_COMM_NULL || is_inter(comm))
        return;
    double cost = cost_of(comm);
    LOCKED;
    struct time *time = await(request, cost);
    time->mine = time->theirs = clock_host();
    if (way == MEET_FROM_ROOT)
        PMPI_Ibcast(&time->theirs, 1, MPI_DOUBLE, root, comm, &time->request);
    else if (way == MEET_AT_ROOT)
        PMPI_Ireduce(&time->mine, &time->theirs, 1, MPI_DOUBLE, MPI_MAX, root, comm,
                     &time->request);
    else
        PMPI_Iallreduce(&time->mine, &time->theirs, 1, MPI_DOUBLE, MPI_MAX, comm,
                        &time->request);
}

/* --- Requests --------------------------------------------------------------------- */

/* Those that have ended are MPI_REQUEST_NULL now. */
void standin_mpi_ended(const MPI_Request *before, int n, const MPI_Request *now) {
    for (int i = 0; clock_on && i < n; i++)
        if (before[i] != MPI_REQUEST_NULL && now[i] == MPI_REQUEST_NULL)
            take(before[i]);
}
