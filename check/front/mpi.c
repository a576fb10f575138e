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

/* --- Buffers ------------------------------------------------------------------- */

/* The bytes that a call uses, and those between its first and its last; 0: none. */
struct span {
    const char *start;
    size_t used, all;
};

static struct span span_of(const void *buffer, MPI_Aint skip, long long count,
                           MPI_Datatype type) {
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    struct span span = {0};
    if (count <= 0 || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ||
        type == MPI_DATATYPE_NULL)
        return span;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    if (size == 0)
        return span;
    span.start = (const char *)buffer + skip + true_low;
    span.all = (size_t)(true_extent + (count - 1) * extent);
    span.used =
        size == extent && extent == true_extent ? (size_t)count * (size_t)size : 1;
    return span;
}

static void look(const struct judge_at *at, const void *buffer, MPI_Aint skip,
                 long long count, MPI_Datatype type, bool write) {
    struct span span = span_of(buffer, skip, count, type);
    if (span.used == 0)
        return;
    // Whether this MPI takes device memory is known only of the stand-in's: it never
    // does.
    judge_host_uses(front_in(), span.start, span.used, write, !standin_host_blocks, *at);
    front_out();
    mpi_has(span.start, span.all, write);
}

void mpi_will_have(const void *buffer, int count, MPI_Datatype type, bool write) {
    struct span span = span_of(buffer, 0, count, type);
    if (span.used > 0)
        mpi_has(span.start, span.all, write);
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

/* --- Conditions and counts ----------------------------------------------------- */

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

/* --- Waiting ------------------------------------------------------------------- */

int mpi_peer(int rank) {
    return rank >= 0 ? rank : rank == MPI_ANY_SOURCE ? JUDGE_ONE_OF : JUDGE_ANY;
}

/* For whom: all ranks of a communicator are known by their numbers in the world. */
static void note_wait(const struct judge_at *at, const struct mpi_whom *whom, int peer) {
    struct timeline_wait wait = {.at = *at, .device = -1, .world = -1};
    enum { MOST = 4096 };
    static __thread int *world;
    if (!world)
        world = front_alloc(MOST * sizeof *world);
    int n = whom ? front_mpi_ranks(NULL, whom, world, MOST) : 0;
    if (peer >= 0 && n == 1)
        wait.world = world[0];
    for (int i = 0; peer == JUDGE_ALL && i < n; i++)
        wait.group = (wait.group ^ (uint64_t)(world[i] + 1)) * UINT64_C(0x100000001b3);
    timeline_waits(&wait);
}

void mpi_waits(const struct judge_at *at, const struct mpi_whom *whom, int peer) {
    if (standin_host_blocks)
        standin_host_blocks(1);
    if (timeline_on)
        note_wait(at, whom, peer);
    if (!front_on)
        return;
    guard_host_call(at);
    judge_wait_mpi(front_in(), whom, whom ? peer : JUDGE_ANY, *at);
    front_out();
}

static __thread struct mpi_whom whom;

static const struct mpi_whom *only(MPI_Comm comm, int peer) {
    whom.n = 1;
    whom.of[0] = (struct mpi_of){.comm = comm, .peer = peer};
    return &whom;
}

void mpi_waits_all(const struct judge_at *at, const MPI_Comm *comm) {
    static uint64_t meetings; // a program's threads make these calls in turn
    if (*comm == MPI_COMM_WORLD && front_on) {
        judge_meets(front_in(), ++meetings);
        front_leave();
    }
    mpi_waits(at, only(*comm, JUDGE_ALL), JUDGE_ALL);
}

void mpi_waits_one(const struct judge_at *at, const MPI_Comm *comm, int rank) {
    int peer = mpi_peer(rank);
    mpi_waits(at, peer == JUDGE_ANY ? NULL : only(*comm, peer), peer);
}

void mpi_waits_any(const struct judge_at *at) {
    mpi_waits(at, NULL, JUDGE_ANY);
}

/* "A process completes a call to MPI_WIN_FENCE only after all other processes in the
 * group entered their matching call", where no epoch is known to be empty (MPI 4.1,
 * 12.5.1). */
void mpi_waits_fence(const struct judge_at *at, MPI_Win win, int assertion) {
    if (!front_on || assertion != 0 || win == MPI_WIN_NULL) {
        mpi_waits_any(at);
        return;
    }
    only(MPI_COMM_NULL, JUDGE_ALL);
    whom.of[0].grouped = true;
    PMPI_Win_get_group(win, &whom.of[0].group);
    mpi_waits(at, &whom, JUDGE_ALL);
}

void mpi_waited(void) {
    mpi_gives_back();
    if (front_on) {
        guard_host_call(NULL);
        judge_wait_end(front_in(), true);
        front_out();
    }
    if (timeline_on)
        timeline_waited();
    if (whom.of[0].grouped)
        PMPI_Group_free(&whom.of[0].group);
    whom.of[0].grouped = false;
    if (standin_host_blocks)
        standin_host_blocks(0);
}

void mpi_speaks(void) {
    if (!front_on || !front_shares)
        return;
    judge_speaks(front_in());
    front_out();
}

void mpi_window(void) {
    if (!front_on)
        return;
    judge_hears_unseen(front_in());
    front_out();
}

void mpi_asked(const struct judge_at *at, int there) {
    if (!front_on)
        return;
    judge_poll_mpi(front_in(), there, *at);
    front_out();
}

/* --- Start and end ------------------------------------------------------------- */

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
    front_depth++;
    if (result == MPI_SUCCESS)
        front_mpi_started();
    front_depth--;
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
