/*
 * comm.c has the communicators: who belongs to them, and how long they live.
 *
 * A communicator lives as long as the program has it, an operation uses it, or one of its
 * ranks has not given it up: what comes for it then is no longer of interest, but known.
 */
#include "data/comm.h"

#include "base/job.h"
#include "cuda/memory.h"

static struct ncclComm *all;
static bool any_made;

struct ncclComm *comm_create(int device, bool blocking) {
    struct ncclComm *comm = base_alloc(sizeof *comm);
    comm->device = device;
    comm->blocking = blocking;
    comm->holds = 1;
    comm->nsignals = 1;
    comm->own = stream_create(device, false);
    comm->own->internal = true;
    comm->newest = comm->leaving = stream_end(comm->own);
    comm->next = all;
    all = comm;
    any_made = true;
    return comm;
}

void comm_promise(struct ncclComm *comm, struct ncclComm *parent, struct ncclComm **out) {
    comm->promised = out;
    comm->parent = parent;
    parent->meetings++;
    comm_hold(parent);
}

static void hand_over(struct ncclComm *comm) {
    if (!comm->promised)
        return;
    *comm->promised = comm;
    comm->promised = NULL;
    comm->parent->meetings--;
    comm_release(comm->parent);
}

void comm_fail(struct ncclComm *comm, ncclResult_t error, const char *why) {
    comm->error = error;
    snprintf(comm->why, sizeof comm->why, "%.255s", why);
    hand_over(comm);
}

void comm_break_promises(struct ncclComm *parent) {
    for (struct ncclComm *comm = all; comm; comm = comm->next)
        if (comm->promised && comm->parent == parent)
            comm_fail(comm, ncclInvalidUsage, "the communicator was given up meanwhile");
}

void comm_become(struct ncclComm *comm, uint64_t id, int rank, int nranks,
                 const int *world) {
    size_t n = (size_t)nranks;
    comm->id = id;
    comm->rank = rank;
    comm->nranks = nranks;
    comm->world = base_alloc(n * sizeof *comm->world);
    memcpy(comm->world, world, n * sizeof *world);
    comm->left = base_alloc(n * sizeof *comm->left);
    comm->told = base_alloc(n);
    comm->came = base_alloc(n);
    comm->sends = base_alloc(n * sizeof *comm->sends);
    comm->receives = base_alloc(n * sizeof *comm->receives);
    if (clock_on) {
        struct ranks asked = comm->ranks;
        comm->ranks = clock_ranks(world, nranks);
        comm->ranks.ctas = asked.ctas;
        comm->ranks.ways = asked.ways;
    }
    comm->state = READY;
    hand_over(comm);
}

struct ncclComm *comm_find(uint64_t id, int rank) {
    for (struct ncclComm *comm = all; comm; comm = comm->next)
        if (comm->id == id && comm->rank == rank && comm->state == READY)
            return comm;
    return NULL;
}

void comm_numbered(int world) {
    for (struct ncclComm *comm = all; comm; comm = comm->next)
        for (int r = 0; comm->state == READY && r < comm->nranks; r++)
            comm->world[r] = world;
}

bool comm_any_made(void) {
    return any_made;
}

bool comm_connects(void) {
    for (const struct ncclComm *comm = all; comm; comm = comm->next)
        for (int r = 1; comm->state == READY && !comm->destroyed && r < comm->nranks; r++)
            if (comm->world[r] != comm->world[0])
                return true;
    return false;
}

struct registration *comm_registered(const struct ncclComm *comm, const void *handle,
                                     bool window) {
    for (struct registration *r = comm->registrations; r; r = r->next)
        if (r == handle && r->live && r->window == window)
            return r;
    return NULL;
}

bool comm_is_window(const void *handle) {
    for (const struct ncclComm *comm = all; comm; comm = comm->next)
        for (const struct registration *r = comm->registrations; r; r = r->next)
            if (r == handle && r->window)
                return true;
    return false;
}

int comm_reach(const struct ncclComm *comm) {
    const int *world = comm->world;
    for (int n = comm->nranks;; n--) {
        bool fits = comm->nranks % n == 0;
        for (int r = 0; r < comm->nranks && fits; r++)
            for (int mate = r / n * n; mate < r && fits; mate++)
                fits = world[mate] != world[r] && job_share_host(world[mate], world[r]);
        if (fits)
            return n;
    }
}

void comm_close_parts(struct registration *window) {
    for (int i = 0; i < window->teammates; i++) {
        struct memory *part = memory_find(window->parts[i]);
        if (part && i != window->lsa_rank)
            ipc_close(part);
    }
    free(window->parts);
    window->parts = NULL;
    window->teammates = 0;
}

bool comm_is_one(const struct ncclComm *comm) {
    for (const struct ncclComm *known = all; known; known = known->next)
        if (known == comm)
            return true;
    return false;
}

void comm_drop(struct ncclComm *comm) {
    comm->era++;
    queue_look();
}

void comm_hold(struct ncclComm *comm) {
    comm->holds++;
}

void comm_release(struct ncclComm *comm) {
    if (--comm->holds > 0)
        return;
    struct ncclComm **at = &all;
    while (*at != comm)
        at = &(*at)->next;
    *at = comm->next;
    stream_retire(comm->own);
    while (comm->early) {
        struct early *early = comm->early;
        comm->early = early->next;
        free(early);
    }
    while (comm->registrations) {
        struct registration *registration = comm->registrations;
        comm->registrations = registration->next;
        comm_close_parts(registration);
        free(registration->sizes);
        free(registration);
    }
    while (comm->shrinks) {
        struct shrink *shrink = comm->shrinks;
        comm->shrinks = shrink->next;
        free(shrink);
    }
    for (int i = 0; comm->signals && i < comm->nranks * comm->nsignals; i++)
        free(comm->signals[i].times);
    free(comm->signals);
    free(comm->world);
    free(comm->left);
    free(comm->told);
    free(comm->came);
    free(comm->sends);
    free(comm->receives);
    free(comm->scratch);
    free(comm->redops);
    free(comm);
}
