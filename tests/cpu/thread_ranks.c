/*
 * Without MPI: every process has a thread for each of its devices, and all of them make a
 * communicator at the same moment. mpirun starts several such processes, which have
 * nothing to do with one another.
 */
#define TAP_ALONE
#include "ints.h"
#include <pthread.h>
#include <stdint.h>

enum { N = 3000, RANKS = 3 };
static ncclUniqueId id;
static int wrong[RANKS];

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
    CUDA(cudaFree(a));
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

int main(void) {
    pthread_t threads[RANKS];
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    tap_rank = atoi(number ? number : "0");
    NCCL(ncclGetUniqueId(&id));
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
