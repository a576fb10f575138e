/*
 * Failures: a training that goes on when a rank is lost, and takes it in again.
 *
 *     mpirun -np 4 ./failures [--fault NAME] [--how NAME] [--join] [-h]
 *
 * model.h is what is trained, agree.h finds who is left, faults.h is what goes wrong, and
 * versions.h is for older NCCLs.
 */
#define _GNU_SOURCE // getpid, usleep
#include "faults.h"
#include "model.h"
#include "versions.h"

#include <cublas_v2.h>

enum { JOIN_STEP = 8 };
enum how { SHRINK, REVOKE, ANEW, HOWS };
static const char *const hows[] = {"shrink", "revoke", "anew", NULL};

struct training {
    int rank, faulty;   // in MPI_COMM_WORLD
    bool fault[FAULTS]; // what the faulty rank does
    enum how how;       // how the others go on
    bool join;
    double deadline;    // seconds that a step may take
    struct members now; // who takes part
    ncclComm_t comm;    // theirs
    struct model model;
};

/* No call on such a communicator blocks the host. Otherwise the first call between two
 * ranks would wait inside NCCL, where no deadline reaches it. */
static ncclConfig_t never_blocking(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

/* Asks until what was begun on the communicator is done, or failed, or too late. */
static ncclResult_t settled(ncclComm_t comm, double seconds) {
    ncclResult_t state = ncclInProgress;
    for (double end = MPI_Wtime() + seconds; state == ncclInProgress; usleep(100))
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || MPI_Wtime() > end)
            return ncclSystemError;
    return state;
}

static void must_settle(ncclComm_t comm, const char *call) {
    if (settled(comm, 30) != ncclSuccess)
        lesson_fail("%s failed: %s", call, ncclGetLastError(comm));
}

/* For calls that may go on in the background. */
#define CHECK_BEGUN(call)                  \
    do {                                   \
        const ncclResult_t begun = (call); \
        if (begun != ncclInProgress)       \
            CHECK_NCCL(begun);             \
    } while (0)

/* A communicator of all who take part, from a new unique id. */
static void make_anew(struct training *t) {
    ncclConfig_t config = never_blocking();
    ncclUniqueId id;
    if (t->rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    agree_bcast(&t->now, t->rank, &id, sizeof id);
    CHECK_BEGUN(ncclCommInitRankConfig(&t->comm, t->now.n, id, member(&t->now, t->rank),
                                       &config));
    must_settle(t->comm, "ncclCommInitRankConfig");
}

/* One step. False if it does not end before `end`, or NCCL has seen an error; the weights
 * from before it are kept. A rank that was stopped must not go on either. */
static bool train(struct training *t, int step, double end) {
    struct model *m = &t->model;
    if (MPI_Wtime() > end)
        return false;
    model_gradient(m, step);
    CHECK_BEGUN(ncclAllReduce(m->gradient, m->gradient, COUNT, ncclFloat32, ncclSum,
                              t->comm, m->stream));
    if (settled(t->comm, t->deadline) != ncclSuccess) // the call may be in the background
        return false;
    for (; cudaStreamQuery(m->stream) == cudaErrorNotReady; usleep(100)) {
        ncclResult_t state;
        CHECK_NCCL(ncclCommGetAsyncError(t->comm, &state));
        if (state != ncclSuccess || MPI_Wtime() > end)
            return false;
    }
    // Only now: queued before, it could run after an abort, over the weights kept.
    model_update(m, step, &t->now);
    CHECK_CUDA(cudaStreamSynchronize(m->stream));
    return true;
}

/* After a step that has failed: agrees on who is left and on the step to go on with, and
 * makes their communicator. False on a rank that the others have given up. */
static bool recover(struct training *t, int step) {
    const struct members old = t->now;
    const ncclComm_t broken = t->comm;
    t->now = agree(&old, t->rank, step, 2 * t->deadline);
    t->comm = NULL;
    const bool lost = member(&t->now, t->rank) < 0;
    if (lost || t->how == ANEW || t->now.n == old.n) {
        // All abort, for whoever does not would wait for ever for those who did.
        CHECK_NCCL(ncclCommAbort(broken));
        if (!lost)
            make_anew(t);
        return !lost;
    }
    int excluded[AGREE_MOST], n = 0; // by their ranks in the broken communicator
    for (int i = 0; i < old.n; i++)
        if (member(&t->now, old.ranks[i]) < 0)
            excluded[n++] = i;
    if (t->how == REVOKE) {
        CHECK_BEGUN(ncclCommRevoke(broken, NCCL_REVOKE_DEFAULT));
        must_settle(broken, "ncclCommRevoke");
    }
    // Where nothing was revoked, the shrink itself has to end what is still running.
    ncclConfig_t config = never_blocking();
    CHECK_BEGUN(
        ncclCommShrink(broken, excluded, n, &t->comm, &config,
                       t->how == REVOKE ? NCCL_SHRINK_DEFAULT : NCCL_SHRINK_ABORT));
    must_settle(broken, "ncclCommShrink"); // before that the new one is not there
    must_settle(t->comm, "ncclCommShrink");
    CHECK_NCCL(ncclCommAbort(broken));
    return true;
}

/* All who take part, and a new rank, make a larger communicator. The new rank gets the
 * weights: with others, it would pull all away from what they have learned. */
static void grow(struct training *t, int newcomer, int step) {
    struct {
        ncclUniqueId id;
        struct members now;
        float expected;
    } welcome = {.now = t->now, .expected = t->model.expected[step]};
    const bool is_new = t->rank == newcomer;
    const ncclComm_t old = t->comm;
    if (t->rank == 0) {
        welcome.now.step = step;
        CHECK_NCCL(ncclCommGetUniqueId(old, &welcome.id));
        agree_send(newcomer, &welcome, sizeof welcome);
    } else if (is_new) {
        agree_receive(&welcome, sizeof welcome);
        step = welcome.now.step;
        t->now = welcome.now;
        t->model.expected[step] = welcome.expected;
    }
    t->now.step = step;
    t->now.ranks[t->now.n++] = newcomer;
    ncclConfig_t config = never_blocking();
    CHECK_BEGUN(ncclCommGrow(is_new ? NULL : old, t->now.n,
                             is_new || t->rank == 0 ? &welcome.id : NULL,
                             is_new ? t->now.n - 1 : -1, &t->comm, &config));
    if (old) {
        must_settle(old, "ncclCommGrow");
        CHECK_NCCL(ncclCommDestroy(old));
    }
    must_settle(t->comm, "ncclCommGrow");
    float *weights = t->model.weights[step % 2];
    CHECK_BEGUN(
        ncclBroadcast(weights, weights, COUNT, ncclFloat32, 0, t->comm, t->model.stream));
    must_settle(t->comm, "ncclBroadcast");
}

/* The training loop, which begins with `step` and returns the step that it came to. */
static int run(struct training *t, int step) {
    double last = MPI_Wtime(), began = last; // the last step was done; this one began
    while (step < STEPS) {
        if (t->join && step == JOIN_STEP && member(&t->now, t->faulty) < 0)
            grow(t, t->faulty, step), began = MPI_Wtime();
        const bool faulty = t->rank == t->faulty && step == FAULTY_STEP;
        if (faulty && t->fault[EXIT])
            _exit(1);
        if (faulty && t->fault[STOP])
            fault_stop(5 * t->deadline);
        if (faulty && t->fault[LEAVE])
            return step;
        // Once: it has done the step, and takes it for failed.
        const bool unsure = faulty && t->fault[UNSURE] && t->now.step < step;
        if (!train(t, step, began + t->deadline) || unsure) {
            if (t->rank == 0)
                printf("step %2d: not done after %.1f s\n", step, MPI_Wtime() - last);
            if (!recover(t, step))
                return step;
            step = t->now.step;
            began = MPI_Wtime();
            continue;
        }
        const double loss = model_check(&t->model, ++step, &t->now);
        if (t->rank == 0)
            printf("step %2d: loss %.4f, %d rank%s, %.1f s\n", step - 1, loss, t->now.n,
                   t->now.n == 1 ? "" : "s", MPI_Wtime() - last);
        fflush(stdout);
        last = began = MPI_Wtime();
    }
    return step;
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct training t = {.comm = NULL};
    bool how[HOWS] = {0};
    size_t ms;
    const struct lesson_option options[] = {
        {"--fault", "NAME", "what the last rank does in step 3 (default: its work):",
         .names = faults, .chosen = t.fault},
        {"--how", "NAME", "recovery (default: shrink):", .names = hows, .chosen = how},
        {"--join", NULL, "after --fault leave: joins again in step 8", .flag = &t.join},
        {"--deadline", "MS", "milliseconds that a step may take", .number = &ms,
         .usual = 2000, .least = 1},
        {0}};
    lesson_options(argc, argv, options);
    int nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &t.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(t.rank % ndevices));
    lesson_one_gpu_per_rank();
    t.faulty = nranks > 1 ? nranks - 1 : nranks; // alone it has nobody who goes on
    t.how = how[ANEW] || !HAS_SHRINK ? ANEW : how[REVOKE] && HAS_REVOKE ? REVOKE : SHRINK;
    t.join = t.join && HAS_GROW && t.fault[LEAVE] && nranks > 1;
    t.deadline = (double)ms / 1e3;
    t.now = agree_all(nranks);
    model_create(&t.model, t.rank);
    make_anew(&t);
    lesson_say_whose_times();
    run(&t, 0);
    if (t.fault[LEAVE] && t.rank == t.faulty) { // it has left the others
        CHECK_NCCL(ncclCommAbort(t.comm));
        t.comm = NULL;
        if (t.join) {
            grow(&t, t.rank, 0);
            run(&t, t.now.step);
        }
    }
    if (t.fault[STOP] && nranks > 1 && member(&t.now, t.faulty) < 0)
        agree_late(&t.now, t.rank, t.faulty); // it wakes up, and learns that it is out
    // MPI's collectives would wait for a rank that is gone, and so would MPI_Finalize.
    const bool gone = t.fault[EXIT] && nranks > 1;
    const int exit_code = gone ? agree_verdict(&t.now, t.rank) : lesson_verdict("weight");

    if (t.comm)
        CHECK_NCCL(ncclCommDestroy(t.comm));
    model_destroy(&t.model);
    if (gone)
        _exit(exit_code);
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
