/*
 * Without MPI: every process has a thread for each of its devices, and all of them make a
 * communicator at the same moment, and grow it together. mpirun starts several such
 * processes, which have nothing to do with one another.
 */
#define TAP_ALONE
#include "ints.h"
#include <pthread.h>
#include <stdint.h>

enum { N = 3000, RANKS = 3 };
static ncclUniqueId id;
static pthread_barrier_t has_id; // that grows a communicator
static int wrong[RANKS];

/* The last rank is left out, and comes back. */
static void grow(ncclComm_t comm, int rank, int *a) {
    static ncclUniqueId again;
    ncclComm_t fewer = NULL, grown;
    int last = RANKS - 1, sum;
    if (rank < last)
        NCCL(ncclCommShrink(comm, &last, 1, &fewer, NULL, 0));
    if (rank == 0)
        NCCL(ncclCommGetUniqueId(fewer, &again));
    pthread_barrier_wait(&has_id);
    NCCL(ncclCommGrow(fewer, RANKS, rank == 0 || !fewer ? &again : NULL,
                      fewer ? -1 : rank, &grown, NULL));
    set_ints(a, 1, rank + 1);
    NCCL(ncclAllReduce(a, a, 1, ncclInt32, ncclSum, grown, 0));
    CUDA(cudaStreamSynchronize(0));
    CUDA(cudaMemcpy(&sum, a, sizeof sum, cudaMemcpyDeviceToHost));
    wrong[rank] += sum != RANKS * (RANKS + 1) / 2;
    if (fewer)
        NCCL(ncclCommDestroy(fewer));
    NCCL(ncclCommDestroy(grown));
}

static void *of_rank(void *number) {
    int rank = (int)(intptr_t)number, devices, *a;
    ncclComm_t comm;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(rank % devices));
    NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
    a = new_ints(N);
    set_ints(a, N, rank + 1);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    int *host = malloc(N * sizeof *host);
    CUDA(cudaMemcpy(host, a, N * sizeof *host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) {
        wrong[rank] += host[i] != RANKS * (RANKS + 1) / 2;
    }
    free(host);
    grow(comm, rank, a);
    CUDA(cudaFree(a));
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

int main(void) {
    pthread_t threads[RANKS];
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    tap_rank = atoi(number ? number : "0");
    NCCL(ncclGetUniqueId(&id));
    pthread_barrier_init(&has_id, NULL, RANKS);
    for (intptr_t r = 0; r < RANKS; r++) {
        pthread_create(&threads[r], NULL, of_rank, (void *)r);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        expect(wrong[r] == 0, "rank %d: %d elements are wrong", r, wrong[r]);
    }
    if (tap_rank > 0) { /* rank 0 speaks; the others' failures are the job's */
        return tap_failures > 0;
    }
    point("a thread for each rank, no MPI");
    return finish();
}
