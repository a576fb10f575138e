/*
 * mpi.c: the program's MPI calls: what they wait for, what they are given, MPI's start
 * and end.
 *
 * They come here through MPI's profiling interface: every function has a second name,
 * PMPI_…. MPI Standard, "Tool Support", "Profiling Interface".
 */
#include "mpi_front.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

void front_mpi_started(void);
void front_mpi_ends(struct judge_at at);
void front_mpi_kept(struct judge_at at);
void guard_host_call(const struct judge_at *at);

/* --- Buffers
 * ------------------------------------------------------------------------------- */

static void look(const struct judge_at *at, const void *buffer, MPI_Aint skip,
                 long long count, MPI_Datatype type, bool write) {
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    if (count <= 0 || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ||
        type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    if (size == 0)
        return;
    size_t bytes =
        size == extent && extent == true_extent ? (size_t)count * (size_t)size : 1;
    // Whether this MPI takes device memory is known only of the stand-in's: it never
    // does.
    judge_host_uses(front_in(), (const char *)buffer + skip + true_low, bytes, write,
                    !standin_host_blocks, *at);
    front_out();
}

void mpi_in(const struct judge_at *at, const void *buffer, int count, MPI_Datatype type) {
    look(at, buffer, 0, count, type, false);
}

void mpi_out(const struct judge_at *at, const void *buffer, int count,
             MPI_Datatype type) {
    look(at, buffer, 0, count, type, true);
}

static void look_vs(const struct judge_at *at, const void *buffer, const int *counts,
                    const int *displs, MPI_Datatype type, MPI_Comm comm, bool write) {
    MPI_Aint low, extent;
    int n = mpi_size(comm);
    if (buffer == MPI_IN_PLACE || type == MPI_DATATYPE_NULL || !counts || !displs)
        return;
    PMPI_Type_get_extent(type, &low, &extent);
    for (int r = 0; r < n; r++)
        look(at, buffer, displs[r] * extent, counts[r], type, write);
}

void mpi_invs(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, MPI_Datatype type, MPI_Comm comm) {
    look_vs(at, buffer, counts, displs, type, comm, false);
}

void mpi_outvs(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, MPI_Datatype type, MPI_Comm comm) {
    look_vs(at, buffer, counts, displs, type, comm, true);
}

static void look_ws(const struct judge_at *at, const void *buffer, const int *counts,
                    const int *displs, const MPI_Datatype *types, MPI_Comm comm,
                    bool write) {
    int n = mpi_size(comm);
    for (int r = 0; buffer != MPI_IN_PLACE && counts && displs && types && r < n; r++)
        look(at, buffer, displs[r], counts[r], types[r], write);
}

void mpi_inws(const struct judge_at *at, const void *buffer, const int *counts,
              const int *displs, const MPI_Datatype *types, MPI_Comm comm) {
    look_ws(at, buffer, counts, displs, types, comm, false);
}

void mpi_outws(const struct judge_at *at, const void *buffer, const int *counts,
               const int *displs, const MPI_Datatype *types, MPI_Comm comm) {
    look_ws(at, buffer, counts, displs, types, comm, true);
}

/* Others will read and write it, at any time and unseen. */
void mpi_win(const struct judge_at *at, const void *buffer) {
    if (!buffer)
        return;
    struct judge *j = front_in();
    judge_host_uses(j, buffer, 1, true, !standin_host_blocks, *at);
    judge_memory_open(j, buffer);
    front_out();
    guard_never(buffer);
}

/* --- Conditions and counts
 * ------------------------------------------------------------------ */

static bool is_inter(MPI_Comm comm) {
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

bool mpi_is_root(int root, MPI_Comm comm) {
    return is_inter(comm) ? root == MPI_ROOT : root == mpi_rank(comm);
}

int mpi_size(MPI_Comm comm) {
    int n = 0;
    if (is_inter(comm))
        PMPI_Comm_remote_size(comm, &n);
    else
        PMPI_Comm_size(comm, &n);
    return n;
}

int mpi_rank(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

int mpi_sum(const int *counts, MPI_Comm comm) {
    int sum = 0, n;
    PMPI_Comm_size(comm, &n);
    for (int r = 0; r < n; r++)
        sum += counts[r];
    return sum;
}

/* --- Waiting
 * ------------------------------------------------------------------------------- */

/* For whom: all ranks of a communicator are known by their numbers in the world. */
static void note_wait(const struct judge_at *at, const MPI_Comm *comm, int peer) {
    struct timeline_wait wait = {.at = *at, .device = -1, .world = -1};
    enum { MOST = 4096 };
    static __thread int *world;
    if (!world)
        world = front_alloc(MOST * sizeof *world);
    int n = comm ? front_mpi_ranks(NULL, comm, peer >= 0 ? peer : -1, world, MOST) : 0;
    if (peer >= 0 && n == 1)
        wait.world = world[0];
    for (int i = 0; peer == JUDGE_ALL && i < n; i++)
        wait.group = (wait.group ^ (uint64_t)(world[i] + 1)) * UINT64_C(0x100000001b3);
    timeline_waits(&wait);
}

static void waits(const struct judge_at *at, const MPI_Comm *comm, int peer) {
    if (standin_host_blocks)
        standin_host_blocks(1);
    if (timeline_on)
        note_wait(at, comm, peer);
    if (!front_on)
        return;
    guard_host_call(at);
    judge_wait_mpi(front_in(), comm, peer, *at);
    front_out();
}

void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm) {
    waits(at, comm, JUDGE_ALL);
}

/* MPI_ANY_SOURCE is anybody, MPI_PROC_NULL nobody: both are negative. */
void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int peer) {
    waits(at, peer >= 0 ? comm : NULL, peer >= 0 ? peer : JUDGE_ANY);
}

void mpi_waits_any(const struct judge_at *at) {
    waits(at, NULL, JUDGE_ANY);
}

void mpi_waited(void) {
    if (front_on) {
        guard_host_call(NULL);
        judge_wait_end(front_in(), true);
        front_out();
    }
    if (timeline_on)
        timeline_waited();
    if (standin_host_blocks)
        standin_host_blocks(0);
}

void mpi_asked(const struct judge_at *at, int there) {
    if (!front_on)
        return;
    judge_poll_mpi(front_in(), there, *at);
    front_out();
}

/* --- Start and end
 * ------------------------------------------------------------------------- */

/* Below is the stand-in, which has these functions too, or MPI itself. */
#ifdef FRONT_LINKED
#define BELOW_MPI(name) BELOW(name)
#else
#define BELOW_MPI(name) (BELOW(name) ? BELOW(name) : P##name)
#endif

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int level;
    if (front_depth > 0)
        return BELOW_MPI(MPI_Init_thread)(argc, argv, required, provided);
    // The judges' helper needs MPI at the same time as the program.
    int result = CALL(BELOW_MPI(MPI_Init_thread), argc, argv,
                      front_checks ? MPI_THREAD_MULTIPLE : required, &level);
    if (provided)
        *provided = level;
    if (result == MPI_SUCCESS)
        front_mpi_started();
    return result;
}

int MPI_Init(int *argc, char ***argv) {
    int level;
    if (front_depth > 0)
        return BELOW_MPI(MPI_Init)(argc, argv);
    return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &level);
}

/* By hand, since the stand-in may pretend several hosts. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Comm_split_type)(comm, type, key, info, out);
    AT_HERE;
    mpi_waits_all(&at, &comm);
    if (standin_mpi_meets)
        standin_mpi_meets(comm, 0, 0);
    int result = CALL(BELOW_MPI(MPI_Comm_split_type), comm, type, key, info, out);
    if (standin_mpi_made && result == MPI_SUCCESS)
        standin_mpi_made(*out);
    mpi_waited();
    return result;
}

int MPI_Finalize(void) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Finalize)();
    AT_HERE;
    if (standin_keeps_mpi && standin_keeps_mpi()) {
        front_mpi_kept(at);
        return BELOW_MPI(MPI_Finalize)();
    }
    front_depth++;
    front_mpi_ends(at);
    front_depth--;
    // Not CALL: MPI calls functions of the program here (attributes), which may still
    // release.
    return BELOW_MPI(MPI_Finalize)();
}

int MPI_Abort(MPI_Comm comm, int code) {
    // The program itself ends the job: what it leaves behind is no mistake.
    front_checks = front_on = false;
    if (timeline_on)
        timeline_dies(front_has_helper());
    return CALL(BELOW_MPI(MPI_Abort), comm, code);
}
