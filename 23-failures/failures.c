/*
 * Failures: a training run that goes on when a rank is lost, and takes it in again.
 *
 *     mpirun -np 4 ./failures [--fault NAME] [--how NAME] [--join] [-h]
 *
 * Beside it, nonblocking.h has calls that don't block the host, members.h sends messages
 * between the ranks, model.h is what is trained, and faults.h has the options and what
 * goes wrong.
 */
#define _GNU_SOURCE // getpid, usleep
#include "faults.h"
#include "members.h"
#include "model.h"
#include "nonblocking.h"

struct training {
    int rank;            // in MPI_COMM_WORLD
    struct asked asked;  // how the others go on; a deadline for each step, and so on
    struct members now;  // who takes part
    ncclComm_t comm;     // theirs
    ncclConfig_t config; // of every communicator
    int meeting;         // before this step all must have done those before it
    struct model model;
};

/* A communicator of all who take part, from a new unique id. MPI_Bcast would need those
 * who are lost, too. */
static void make_anew(struct training *t) {
    ncclUniqueId id;
    if (t->rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    for (int i = 1; t->rank == 0 && i < t->now.n; i++)
        tell(t->now.ranks[i], &id, sizeof id, TAG_NEWS);
    if (t->rank != 0)
        must_hear(&id, sizeof id, TAG_NEWS, 300);
    CHECK_BEGUN(ncclCommInitRankConfig(&t->comm, t->now.n, id, member(&t->now, t->rank),
                                       &t->config));
    must_settle(t->comm, "ncclCommInitRankConfig");
}

/* One step. False if it does not end before `end`, or if NCCL has seen an error. Then the
 * weights from before it are still there. */
static bool train(struct training *t, double end) {
    struct model *m = &t->model;
    if (MPI_Wtime() > end) // this rank itself was stopped meanwhile
        return false;
    model_gradient(m, t->now.step);
    CHECK_BEGUN(ncclAllReduce(m->gradient, m->gradient, COUNT, ncclFloat32, ncclSum,
                              t->comm, m->stream));
    if (settled(t->comm, t->asked.deadline) != ncclSuccess) // it may be in the background
        return false;
    for (; cudaStreamQuery(m->stream) == cudaErrorNotReady; usleep(100)) {
        ncclResult_t state;
        CHECK_NCCL(ncclCommGetAsyncError(t->comm, &state));
        if (state != ncclSuccess || MPI_Wtime() > end)
            return false;
    }
    // Only now: queued before, it could run after an abort, over the weights kept.
    model_update(m, &t->now);
    CHECK_CUDA(cudaStreamSynchronize(m->stream));
    return true;
}

/* Tells rank 0 which step comes next here, old->step, and returns what it has decided:
 * who is left, and the step that all go on with. Whoever rank 0 has not heard within
 * `seconds` is lost. Rank 0 alone decides, so that all go on with the same list. */
static struct members agree(const struct members *old, int rank, double seconds) {
    struct members now = *old, theirs;
    if (rank != 0) {
        tell(0, old, sizeof *old, old->round);
        must_hear(&now, sizeof now, old->round, 60 + 5 * seconds);
        return now;
    }
    bool heard[MOST_RANKS] = {true};
    const double end = MPI_Wtime() + seconds;
    for (int n = 1; n < old->n; n++) {
        const int from = hear(MPI_ANY_SOURCE, &theirs, sizeof theirs, old->round, end);
        if (from < 0)
            break; // the time is over
        heard[from] = true;
        if (theirs.step < now.step)
            now.step = theirs.step; // all have finished those before
        now.settled = now.settled && theirs.settled;
        now.checked += theirs.checked;
        now.wrong += theirs.wrong;
    }
    now.n = 0;
    for (int i = 0; i < old->n; i++)
        if (heard[old->ranks[i]])
            now.ranks[now.n++] = old->ranks[i];
    now.round++;
    // The lost ranks are told, too: one of them may wake up, and learns that it is out.
    for (int i = 1; i < old->n; i++)
        tell(old->ranks[i], &now, sizeof now, old->round);
    return now;
}

/* Those who are left make a smaller communicator out of the broken one. ABORT: the shrink
 * has to end what is still running there. */
static void shrink(struct training *t, const struct members *old, ncclComm_t broken) {
    int excluded[MOST_RANKS], n = 0; // by their ranks in the broken communicator
    for (int i = 0; i < old->n; i++)
        if (member(&t->now, old->ranks[i]) < 0)
            excluded[n++] = i;
    CHECK_BEGUN(
        ncclCommShrink(broken, excluded, n, &t->comm, &t->config, NCCL_SHRINK_ABORT));
    must_settle(broken, "ncclCommShrink"); // before that the new one is not there
    must_settle(t->comm, "ncclCommShrink");
}

/* After a step that has failed, and at a meeting: agrees on who is left and on the step
 * to go on with, and makes their communicator. A rank that is given up only aborts. */
static void recover(struct training *t) {
    struct members old = t->now;
    const ncclComm_t broken = t->comm;
    old.settled = settled(broken, 0) != ncclInProgress; // ncclCommShrink wants that
    // Two deadlines: a healthy rank may have begun its step a little later.
    t->now = agree(&old, t->rank, 2 * t->asked.deadline);
    if (t->now.n == old.n && t->now.step == t->meeting)
        return; // all have done it
    t->comm = NULL;
    if (t->now.n == old.n) // nobody is missing: the time was too short
        t->asked.deadline *= 2;
    const bool lost = member(&t->now, t->rank) < 0;
    if (!lost && t->asked.how == SHRINK && t->now.n < old.n && t->now.settled)
        shrink(t, &old, broken);
    // All must abort. A rank that does not would wait for ever for those that did.
    CHECK_NCCL(ncclCommAbort(broken));
    if (!lost && !t->comm)
        make_anew(t);
}

/* All who take part, and a new rank, make a larger communicator. The new rank gets their
 * weights. With others it would pull all ranks away from what they have learned. */
static void join(struct training *t) {
    const bool is_new = t->rank == t->asked.faulty;
    const ncclComm_t old = t->comm; // the new rank has none: NULL
    struct model *m = &t->model;
    struct {
        ncclUniqueId id;
        struct members now;
        float expected; // what the weights must be
    } news = {.now = t->now, .expected = m->expected[t->now.step]};
    if (t->rank == 0) {
        CHECK_NCCL(ncclCommGetUniqueId(old, &news.id));
        tell(t->asked.faulty, &news, sizeof news, TAG_NEWS);
    } else if (is_new) { // like a new process, it has no weights
        must_hear(&news, sizeof news, TAG_NEWS, 300);
        t->now = news.now;
        model_destroy(m);
        model_create(m, t->rank);
        m->expected[t->now.step] = news.expected;
    }
    t->now.ranks[t->now.n++] = t->asked.faulty;
    CHECK_BEGUN(ncclCommGrow(old, t->now.n, is_new || t->rank == 0 ? &news.id : NULL,
                             is_new ? t->now.n - 1 : -1, &t->comm, &t->config));
    if (old)
        must_settle(old, "ncclCommGrow");
    must_settle(t->comm, "ncclCommGrow");
    if (old) // only now: until then the new one is made through its connections
        CHECK_NCCL(ncclCommDestroy(old));
    float *weights = m->weights[t->now.step % 2];
    CHECK_BEGUN(
        ncclBroadcast(weights, weights, COUNT, ncclFloat32, 0, t->comm, m->stream));
    must_settle(t->comm, "ncclBroadcast");
    t->meeting = STEPS; // the next one is at the end
}

/* The training loop, until the last step is done or this rank is out. */
static void run(struct training *t) {
    while (t->now.step < STEPS) {
        // Who is out has no communicator, and the last rank waits in join for the others.
        if (t->meeting == JOIN_STEP &&
            (t->comm ? t->now.step == JOIN_STEP : t->rank == t->asked.faulty))
            join(t);
        if (!t->comm)
            return;
        const double end = MPI_Wtime() + t->asked.deadline;
        if (fault_now(&t->asked, t->rank, t->now.step)) { // it leaves
            CHECK_NCCL(ncclCommAbort(t->comm));
            t->comm = NULL;
            continue;
        }
        const bool done = train(t, end);
        model_report(&t->model, &t->now, t->rank, done);
        t->now.step += done;
        if (!done || t->now.step == t->meeting)
            recover(t);
    }
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int nranks, ndevices;
    struct training t = {.config = never_blocking()};
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &t.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    t.asked = fault_options(argc, argv, nranks);
    t.meeting = t.asked.join ? JOIN_STEP : STEPS;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(t.rank % ndevices));
    lesson_one_gpu_per_rank();
    lesson_say_whose_times();

    t.now = all_members(nranks);
    make_anew(&t);
    model_create(&t.model, t.rank);
    // All ranks start with weights of 0.
    CHECK_CUDA(cudaMemsetAsync(t.model.weights[0], 0, COUNT * sizeof *t.model.weights[0],
                               t.model.stream));
    run(&t);

    // Who is still there? A rank that was given up comes to the end as well.
    struct members all = all_members(nranks);
    all.round = TAG_END;
    all.checked = lesson_checks.checked, all.wrong = lesson_checks.wrong;
    const struct members there = agree(&all, t.rank, 3 + 3 * t.asked.deadline);
    const int exit_code = model_verdict(&there, t.rank, nranks);
    model_destroy(&t.model);
    if (t.comm)
        CHECK_NCCL(ncclCommDestroy(t.comm));
    if (there.n < nranks) // MPI_Finalize would wait for a rank that is gone
        _exit(exit_code);
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
