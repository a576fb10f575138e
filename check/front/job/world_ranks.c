/*
 * world_ranks.c: whom a call of MPI waits for, by ranks of the world.
 */
#include "world_ranks.h"

#include "base/base.h"
#include "talk.h"

bool mpi_is_inter(MPI_Comm comm) {
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    return inter;
}

static int ranks_of(const struct mpi_of *of, int *out, int most) {
    MPI_Group group, all;
    int n, *ranks;
    if (of->comm == MPI_COMM_NULL)
        return -1;
    if (mpi_is_inter(of->comm))
        PMPI_Comm_remote_group(of->comm, &group);
    else
        PMPI_Comm_group(of->comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(group, &n);
    if (of->peer >= n || n > most) {
        n = -1;
    } else {
        n = of->peer >= 0 ? 1 : n;
        ranks = calloc((size_t)n + 1, sizeof *ranks);
        for (int i = 0; i < n; i++)
            ranks[i] = of->peer >= 0 ? of->peer : i;
        PMPI_Group_translate_ranks(group, n, ranks, all, out);
        for (int i = 0, known = n; i < known; i++)
            if (out[i] == MPI_UNDEFINED) // of another job
                n = -1;
        free(ranks);
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return n;
}

int mpi_world_ranks(void *self, const void *call, int *out, int most) {
    const struct mpi_whom *whom = call;
    int *more = must_alloc(((size_t)front_job.nranks + 1) * sizeof *more),
        n = front_job.mpi_up ? 0 : -1;
    (void)self;
    for (int i = 0; i < whom->n && n >= 0; i++) {
        int found = ranks_of(&whom->of[i], more, front_job.nranks);
        for (int r = 0; r < found; r++) {
            bool there = false;
            for (int k = 0; k < n && !there; k++)
                there = out[k] == more[r];
            if (!there && n < most)
                out[n++] = more[r];
        }
        n = found < 0 ? -1 : n;
    }
    free(more);
    return n;
}
