/*
 * mpi.c: MPI's start and end, and what mpi.list does not say of the program's MPI calls.
 *
 * They come here through MPI's profiling interface: every function has a second name,
 * PMPI_…. MPI Standard, "Tool Support", "Profiling Interface".
 */
#include "mpi_waits.h"
#include "mpi_requests.h"
#include "start.h"
#include "talk.h"
#include "timeline.h"

/* (Where they are defined, the compiler would answer for it.) */
#define CALLED(name) (mpi_function) MPI_##name,
static const mpi_function completing[] = {MPI_COMPLETING(CALLED)};

static int mpi_level = MPI_THREAD_SINGLE; // what the program was told that it may do

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
                      front_checks ? MPI_THREAD_MULTIPLE : required, &mpi_level);
    if (front_checks && mpi_level > required)
        mpi_level = required;
    if (provided)
        *provided = mpi_level;
    requests_called(completing);
    front_depth++;
    if (result == MPI_SUCCESS)
        start_mpi();
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
        *provided = mpi_level;
    return result;
}

/* By hand, since the stand-in may pretend several hosts. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Comm_split_type)(comm, type, key, info, out);
    MPI_HERE;
    mpi_waits_all(&at, &comm, JUDGE_NO_MESSAGE);
    if (OVER_STANDIN)
        STANDIN(mpi_meets)(comm, 0, 0);
    int result = CALL(BELOW_MPI(MPI_Comm_split_type), comm, type, key, info, out);
    if (OVER_STANDIN && result == MPI_SUCCESS)
        STANDIN(mpi_made)(*out);
    mpi_waited();
    return result;
}

int MPI_Finalize(void) {
    if (front_depth > 0)
        return BELOW_MPI(MPI_Finalize)();
    AT_HERE;
    if (OVER_STANDIN && STANDIN(keeps_mpi)()) {
        start_mpi_kept(at);
        // Functions of the program that it calls (attributes) may still call MPI.
        return BELOW_MPI(MPI_Finalize)();
    }
    front_depth++;
    start_mpi_ends(at);
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
    AT_HERE;
    if (front_checks)
        TELL(judge_aborts);
    start_job_ends(at);
    front_checks = front_on = false;
    if (timeline_on)
        timeline_dies(talk_has_helper());
    return CALL(BELOW_MPI(MPI_Abort), comm, code);
}
