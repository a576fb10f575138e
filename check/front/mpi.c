/*
 * mpi.c: the program's MPI calls: what they wait for, and MPI's start and end.
 *
 * They come here through MPI's profiling interface: every function has a second name,
 * PMPI_…. MPI Standard, "Tool Support", "Profiling Interface".
 */
#include "mpi_front.h"
#include "talk.h"
#include "timeline.h"

#include <stdatomic.h>
#include <string.h>

/* --- Waiting ------------------------------------------------------------------- */

/* For whom: all ranks of a communicator are known by their numbers in the world. */
static void note_wait(const struct judge_at *at, const struct mpi_whom *whom, int peer) {
    struct timeline_wait wait = {.at = *at, .device = -1, .world = -1};
    enum { MOST = 4096 };
    static __thread int *world;
    if (!world)
        world = front_alloc(MOST * sizeof *world);
    int n = whom ? mpi_world_ranks(NULL, whom, world, MOST) : 0;
    if (peer >= 0 && n == 1)
        wait.world = world[0];
    for (int i = 0; peer == JUDGE_ALL && i < n; i++)
        wait.group = (wait.group ^ (uint64_t)(world[i] + 1)) * UINT64_C(0x100000001b3);
    timeline_waits(&wait);
}

/* Requests and the like that are not known to be completed. */
static atomic_llong under_way;

void mpi_under_way(int more) {
    atomic_fetch_add(&under_way, more);
}

static void waits(const struct judge_at *at, const struct mpi_whom *whom, int peer,
                  enum judge_way way) {
    if (standin_host_blocks)
        standin_host_blocks(1);
    if (timeline_on)
        note_wait(at, whom, peer);
    if (!front_on)
        return;
    guard_mpi_call(at);
    judge_wait_mpi(front_in(), whom, whom ? peer : JUDGE_ANY,
                   atomic_load(&under_way) > 0 ? JUDGE_MORE : way, *at);
    front_out();
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
        guard_mpi_call(NULL);
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

void mpi_asked(const struct judge_at *at, int there) {
    if (!front_on)
        return;
    judge_poll_mpi(front_in(), there, *at);
    front_out();
}

/* --- Functions of the same names ------------------------------------------------ */

/* (Where they are defined the compiler would answer for it.) */
#define CALLED(name) (mpi_function) MPI_##name,
bool mpi_calls_come_to(const mpi_function *functions) {
    const mpi_function called[] = {MPI_COMPLETING(CALLED)};
    return memcmp(called, functions, sizeof called) == 0;
}

/* --- Start and end ------------------------------------------------------------- */

/* Below is the stand-in, which has these functions too, or MPI itself. */
#ifdef FRONT_LINKED
#define BELOW_MPI(name) BELOW(name)
#else
#define BELOW_MPI(name) (BELOW(name) ? BELOW(name) : P##name)
#endif

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Init_thread)(argc, argv, required, provided);
    // The judges' helper needs MPI at the same time as the program. That is not the
    // program's: it is given what it asked for.
    int result = CALL(BELOW_MPI(MPI_Init_thread), argc, argv,
                      front_checks ? MPI_THREAD_MULTIPLE : required, &front_mpi_level);
    if (front_checks && front_mpi_level > required)
        front_mpi_level = required;
    if (provided)
        *provided = front_mpi_level;
    front_depth++;
    if (result == MPI_SUCCESS)
        front_mpi_started();
    front_depth--;
    return result;
}

int MPI_Init(int *argc, char ***argv) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Init)(argc, argv);
    return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, NULL);
}

int MPI_Query_thread(int *provided) {
    int result = PMPI_Query_thread(provided);
    if (result == MPI_SUCCESS && front_depth == 0 && front_job.mpi_up)
        *provided = front_mpi_level;
    return result;
}

/* By hand, since the stand-in may pretend several hosts. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Comm_split_type)(comm, type, key, info, out);
    MPI_HERE;
    mpi_waits_all(&at, &comm, JUDGE_NO_MESSAGE);
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
        // Functions of the program that it calls (attributes) may still call MPI.
        return BELOW_MPI(MPI_Finalize)();
    }
    front_depth++;
    front_mpi_ends(at);
    front_depth--;
    // Not CALL: MPI calls functions of the program here (attributes), which may still
    // release.
    return BELOW_MPI(MPI_Finalize)();
}

double MPI_Wtime(void) {
    front_timed = true;
    return CALL(BELOW_MPI(MPI_Wtime));
}

int MPI_Abort(MPI_Comm comm, int code) {
    // The program itself ends the job: what it leaves behind is no mistake.
    front_checks = front_on = false;
    if (timeline_on)
        timeline_dies(front_has_helper());
    return CALL(BELOW_MPI(MPI_Abort), comm, code);
}
