/*
 * Hangs: a small training loop with a fault of your choice. Most make it hang.
 *
 *     mpirun -np 4 ./hangs [--fault NAME] [--rank R] [--step S] [--steps N] [-h]
 */
#define _GNU_SOURCE // kill
#include "lesson.h"

#include <signal.h>
#include <unistd.h>

enum fault { SKIP, COUNT, ORDER, BRANCH, SLOW, STOPPED, DEAD, FAULTS };
static const char *const names[FAULTS + 1] = {"skip", "count",   "order", "branch",
                                              "slow", "stopped", "dead",  NULL};

enum { WEIGHTS = 1 << 20, SLOW_SECONDS = 8 };

/* What a rank needs for a step. */
struct training {
    ncclComm_t data, norm; // two communicators of all ranks: for gradients, for norms
    cudaStream_t stream;
    float *gradient, *squares; // on the GPU
    float *host;
    int rank, nranks;
};

/* True on the rank and in the step of the fault, if this is the one that was chosen. */
static bool has(const bool *faults, enum fault fault, bool here) {
    return faults[fault] && here;
}

/* The faults that are not NCCL's: a rank that is slow, one that is stopped, and one that
 * is gone. */
static void outside_of_nccl(const bool *faults, bool here) {
    if (has(faults, SLOW, here)) // a slow disk, a checkpoint, a garbage collector
        sleep(SLOW_SECONDS);
    if (has(faults, STOPPED, here)) // a debugger, a full disk, a memory that swaps
        raise(SIGSTOP);
    if (has(faults, DEAD, here)) // out of memory: the kernel kills without a word
        raise(SIGKILL);
}

/* One step. Returns the loss, the same on all ranks unless something is wrong. */
static float step(const struct training *t, const bool *faults, bool here, int number) {
    const size_t bytes = WEIGHTS * sizeof(float);
    for (size_t i = 0; i < WEIGHTS; i++) // instead of a backward pass
        t->host[i] = (float)(t->rank + 1) / (float)(1 << number);
    CHECK_CUDA(
        cudaMemcpyAsync(t->gradient, t->host, bytes, cudaMemcpyHostToDevice, t->stream));
    CHECK_CUDA(cudaMemcpyAsync(t->squares, t->host, sizeof(float), cudaMemcpyHostToDevice,
                               t->stream));
    outside_of_nccl(faults, here);

    // The norm of the gradients and the gradients themselves: two calls, two
    // communicators, in the same order on all ranks. Or not.
    const size_t count = has(faults, COUNT, here) ? WEIGHTS - 1 : WEIGHTS;
    if (!has(faults, ORDER, here))
        CHECK_NCCL(ncclAllReduce(t->squares, t->squares, 1, ncclFloat32, ncclSum, t->norm,
                                 t->stream));
    if (!has(faults, SKIP, here))
        CHECK_NCCL(ncclAllReduce(t->gradient, t->gradient, count, ncclFloat32, ncclSum,
                                 t->data, t->stream));
    if (has(faults, ORDER, here))
        CHECK_NCCL(ncclAllReduce(t->squares, t->squares, 1, ncclFloat32, ncclSum, t->norm,
                                 t->stream));

    float loss; // in ordinary memory: the copy waits, so a rank that hangs hangs there
    CHECK_CUDA(cudaMemcpyAsync(&loss, t->gradient, sizeof loss, cudaMemcpyDeviceToHost,
                               t->stream));
    CHECK_CUDA(cudaStreamSynchronize(t->stream));
    return loss / (float)t->nranks;
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct training t;
    int ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &t.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &t.nranks));
    bool faults[FAULTS] = {0};
    size_t faulty = 0, faulty_step = 0, steps = 0;
    const struct lesson_option options[] = {
        {"--fault", "NAME", "the fault (default: none); README.md says what each does:",
         .names = names, .chosen = faults},
        {"--rank", "R", "the rank that has the fault", .number = &faulty, .usual = 1},
        {"--step", "S", "the step in which it happens, from 0", .number = &faulty_step,
         .usual = 3},
        {"--steps", "N", "how many steps are trained", .number = &steps, .usual = 5,
         .least = 1, .most = 20},
        {0}};
    lesson_options(argc, argv, options);
    for (int f = 0; f < FAULTS; f++)
        if (faults[f] &&
            (faulty >= (size_t)t.nranks || faulty_step + (f == BRANCH) >= steps)) {
            if (t.rank == 0)
                fprintf(stderr,
                        "hangs: nobody would have the fault: the ranks are 0 to %d, the "
                        "steps 0 to %zu%s\n",
                        t.nranks - 1, steps - 1,
                        f == BRANCH ? ", and after the last all leave the loop" : "");
            lesson_leave(1);
        }
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(t.rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it. The second communicator is a copy.
    ncclUniqueId id;
    if (t.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&t.data, t.nranks, id, t.rank));
    CHECK_NCCL(ncclCommSplit(t.data, 0, t.rank, &t.norm, NULL));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&t.gradient, WEIGHTS * sizeof(float)));
    CHECK_CUDA(cudaMalloc((void **)&t.squares, sizeof(float)));
    t.host = lesson_malloc(WEIGHTS * sizeof(float));

    for (int s = 0; s < (int)steps; s++) {
        const bool here = t.rank == (int)faulty && s == (int)faulty_step;
        const float loss = step(&t, faults, here, s);
        if (t.rank == 0)
            printf("step %d: loss %.4f\n", s, (double)loss);
        fflush(stdout);
        lesson_expect((size_t)s, (double)loss,
                      (double)((float)(t.nranks * (t.nranks + 1) / 2) / (float)(1 << s) /
                               (float)t.nranks));
        // "Good enough, stop": sensible, if all ranks see the same number.
        if (has(faults, BRANCH, here))
            break;
    }
    const int exit_code = lesson_verdict("value");

    free(t.host);
    CHECK_CUDA(cudaFree(t.squares));
    CHECK_CUDA(cudaFree(t.gradient));
    CHECK_CUDA(cudaStreamDestroy(t.stream));
    CHECK_NCCL(ncclCommDestroy(t.norm));
    CHECK_NCCL(ncclCommDestroy(t.data));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
