/*
 * lesson.h: what every lesson needs and none teaches.
 *
 * check.h has the error checks, options.h the command line, table.h the tables; here is
 * the verdict. What a lesson is about is in its own program: nothing here starts or ends
 * MPI, chooses a GPU or makes a communicator.
 */
#ifndef LESSON_H
#define LESSON_H

#include "check.h"
#include "options.h"
#include "table.h"

/* Whether the times are those of a modelled machine (cpu/clock.md). */
static inline bool lesson_modelled(void) {
    const char *machine = getenv("NCCL_CPU_CLOCK");
    return LESSON_CPU_BUILD && machine && *machine;
}

/* Says once, on rank 0, what the times of the CPU build are, unless a modelled clock says
 * its own. */
static inline void lesson_say_whose_times(void) {
    static bool said;
    if (LESSON_CPU_BUILD && !said && !lesson_modelled() && lesson_self().rank == 0)
        printf("CPU build: these are times of this computer's CPU, not of GPUs.\n");
    said = true;
}

struct lesson_gpu {
    char machine[MPI_MAX_PROCESSOR_NAME];
    char bus_id[32];
    int device, ndevices;
};

static inline bool lesson_same_gpu(const struct lesson_gpu *a,
                                   const struct lesson_gpu *b) {
    return strcmp(a->machine, b->machine) == 0 && strcmp(a->bus_id, b->bus_id) == 0;
}

/* Ends the job with exit code 1 and one message if two ranks of a machine are bound to
 * the same GPU. ncclCommInitRank would refuse them, too, but not name them. */
static inline void lesson_one_gpu_per_rank(void) {
    struct lesson_self self = lesson_self();
    struct lesson_gpu mine = {.device = -1}, *all;
    memcpy(mine.machine, self.machine, sizeof mine.machine);
    CHECK_CUDA(cudaGetDevice(&mine.device));
    CHECK_CUDA(cudaGetDeviceCount(&mine.ndevices));
    CHECK_CUDA(cudaDeviceGetPCIBusId(mine.bus_id, sizeof mine.bus_id, mine.device));
    all = (struct lesson_gpu *)calloc((size_t)self.nranks, sizeof *all);
    if (!all)
        lesson_fail("out of host memory");
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));
    lesson_ranks_here = 0;
    for (int i = 0; i < self.nranks; i++)
        lesson_ranks_here += strcmp(all[i].machine, self.machine) == 0;
    // NCCL 2.30 and newer allow it if this variable is set.
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int first = -1;
    for (int i = 0; i < self.nranks && first < 0; i++)
        for (int j = i + 1; j < self.nranks && first < 0; j++)
            if (lesson_same_gpu(&all[i], &all[j]))
                first = i;
    if (first >= 0 && !(allowed && strcmp(allowed, "1") == 0)) {
        if (self.rank == 0) {
            const struct lesson_gpu *gpu = &all[first];
            int ranks_there = 0, last = first;
            for (int i = 0; i < self.nranks; i++) {
                ranks_there += strcmp(all[i].machine, gpu->machine) == 0;
                last = lesson_same_gpu(&all[i], gpu) ? i : last;
            }
            fprintf(stderr, "ranks %d", first);
            for (int i = first + 1; i <= last; i++)
                if (lesson_same_gpu(&all[i], gpu))
                    fprintf(stderr, "%s %d", i == last ? " and" : ",", i);
            fprintf(stderr,
                    " on %s are bound to the same GPU, number %d (%s);"
                    " NCCL wants one GPU per rank.\n",
                    gpu->machine, gpu->device, gpu->bus_id);
            if (ranks_there > gpu->ndevices)
                fprintf(
                    stderr,
                    "  Hint: this machine has %d GPU%s: at most -np %d here, or more nodes.\n",
                    gpu->ndevices, gpu->ndevices == 1 ? "" : "s", gpu->ndevices);
            else
                fprintf(
                    stderr,
                    "  Hint: this machine has enough GPUs for its %d ranks. Each rank should call\n"
                    "        cudaSetDevice(rank %% deviceCount). That needs ranks that are placed node by node\n"
                    "        (srun --distribution=block, mpirun --map-by slot), not dealt out in turn.\n"
                    "        A rank's number on its own node is right in every order: see exercise 00.3.\n",
                    ranks_there);
        }
        free(all);
        lesson_leave(1);
    }
    free(all);
}

static struct {
    unsigned long long checked, wrong;
    double rank, index, got, expected; // of the first wrong one
} lesson_checks;

/* Records whether element `index` of this rank's result is as expected. */
static inline void lesson_expect(size_t index, double got, double expected) {
    lesson_checks.checked++;
    if (got == expected)
        return;
    if (lesson_checks.wrong++ == 0) {
        lesson_checks.rank = lesson_self().rank;
        lesson_checks.index = (double)index;
        lesson_checks.got = got;
        lesson_checks.expected = expected;
    }
}

/* Prints the verdict over all ranks' lesson_expect calls as the last line. Without MPI
 * each rank counts only its own (on the CPU build too, where MPI runs all the same).
 *   what  the word for one checked thing, for example "element"
 * Returns the program's exit code: 0 if some were checked and all were right, else 1. */
static inline int lesson_verdict(const char *what) {
    struct lesson_self self = lesson_self();
    unsigned long long sum[2] = {lesson_checks.checked, lesson_checks.wrong};
    double first[4] = {lesson_checks.rank, lesson_checks.index, lesson_checks.got,
                       lesson_checks.expected};
    if (lesson_mpi_runs() && lesson_alone.nranks == 1) {
        // The lowest rank that has a wrong one tells the others about it.
        int candidate = sum[1] ? self.rank : self.nranks - 1, teller;
        CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM,
                                MPI_COMM_WORLD));
        CHECK_MPI(
            MPI_Allreduce(&candidate, &teller, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        CHECK_MPI(MPI_Bcast(first, 4, MPI_DOUBLE, teller, MPI_COMM_WORLD));
    }
    if (self.rank == 0 && sum[0] == 0) {
        printf("FAILED: nothing was checked\n");
    } else if (self.rank == 0 && sum[1] == 0) {
        printf("OK: %d rank%s, all %llu %ss as expected\n", self.nranks,
               self.nranks == 1 ? "" : "s", sum[0], what);
    } else if (self.rank == 0) {
        char got[LESSON_WIDTH], expected[LESSON_WIDTH];
        lesson_cell(got, first[2]);
        lesson_cell(expected, first[3]);
        printf("FAILED: rank %.0f, %s %.0f is %s, expected %s", first[0], what, first[1],
               got, expected);
        if (sum[1] > 1)
            printf(" (and %llu more)", sum[1] - 1);
        printf("\n");
    }
    fflush(stdout);
    return sum[0] > 0 && sum[1] == 0 ? 0 : 1;
}

#endif
