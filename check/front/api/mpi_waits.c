/*
 * mpi_waits.c: what the program's MPI calls wait for.
 */
#include "mpi_waits.h"

#include "pages.h"
#include "timeline.h"

/* For whom: all ranks of a communicator are known by their numbers in the world. */
static void note_wait(const struct judge_at *at, const struct mpi_whom *whom, int peer) {
    struct timeline_wait wait = {.at = *at, .device = -1, .world = -1};
    enum { MOST = 4096 };
    static __thread int *world;
    if (!world)
        world = must_alloc(MOST * sizeof *world);
    int n = whom ? mpi_world_ranks(NULL, whom, world, MOST) : 0;
    if (peer >= 0 && n == 1)
        wait.world = world[0];
    for (int i = 0; peer == JUDGE_ALL && i < n; i++)
        wait.group = (wait.group ^ (uint64_t)(world[i] + 1)) * UINT64_C(0x100000001b3);
    timeline_waits(&wait);
}

atomic_llong mpi_more;

void mpi_under_way(int more) {
    atomic_fetch_add(&mpi_more, more);
}

static void waits(const struct judge_at *at, const struct mpi_whom *whom, int peer,
                  enum judge_way way) {
    if (OVER_STANDIN)
        STANDIN(host_blocks)(1);
    if (timeline_on)
        note_wait(at, whom, peer);
    if (!front_on)
        return;
    pages_mpi_call(at);
    TELL(judge_wait_mpi, whom, whom ? peer : JUDGE_ANY,
         atomic_load(&mpi_more) > 0 ? JUDGE_MORE : way, *at);
}

void mpi_waits(const struct judge_at *at, const struct mpi_whom *whom, int peer) {
    waits(at, whom, peer, JUDGE_MORE);
}

static __thread struct mpi_whom whom;

static const struct mpi_whom *only(MPI_Comm comm, int peer) {
    whom.n = 1;
    whom.of[0] = (struct mpi_of){.comm = comm, .peer = peer};
    return &whom;
}

void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm, enum judge_way way) {
    static uint64_t meetings; // a program's threads make these calls in turn
    if (*comm == MPI_COMM_WORLD && front_on) {
        judge_meets(front_in(), ++meetings);
        front_leave();
    }
    waits(at, only(*comm, JUDGE_ALL), JUDGE_ALL, way);
}

void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int rank,
                   enum judge_way way) {
    int peer = mpi_peer(rank);
    waits(at, peer == JUDGE_ANY ? NULL : only(*comm, peer), peer, way);
}

void mpi_waits_any(const struct judge_at *at) {
    mpi_waits(at, NULL, JUDGE_ANY);
}

void mpi_waited(void) {
    mpi_gives_back();
    if (front_on) {
        pages_mpi_call(NULL);
        TELL(judge_wait_end, true);
    }
    if (timeline_on)
        timeline_waited();
    if (OVER_STANDIN)
        STANDIN(host_blocks)(0);
}

void mpi_asked(const struct judge_at *at, int there) {
    if (!front_on)
        return;
    TELL(judge_poll_mpi, there, *at);
}
