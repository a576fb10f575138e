/* One process and one thread for each device, each with ncclCommInitRank; no MPI. */
#define TAP_ALONE
#include "ints.h"

enum { MOST = 8, N = 2000, ROUNDS = 30 };

static int ndev;
static ncclUniqueId id;

static void *rank_of(void *argument) {
    int rank = (int)(long)argument, device = -1, n = -1, me = -1;
    ncclComm_t comm = NULL, part = NULL;
    cudaStream_t stream;
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, ndev, id, rank));
    if (comm == NULL) {
        return NULL;
    }
    CUDA(cudaGetDevice(&device));
    expect(device == rank, "thread %d has device %d", rank, device);
    NCCL(ncclCommCount(comm, &n));
    NCCL(ncclCommUserRank(comm, &me));
    expect(n == ndev && me == rank, "thread %d is rank %d of %d", rank, me, n);
    CUDA(cudaStreamCreate(&stream));
    int *a = new_ints(N), *b = new_ints(N);
    for (int round = 0; round < ROUNDS; round++) {
        set_ints(a, N, rank + round);
        NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclSum, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect_ints(b, N, ndev * (ndev - 1) / 2 + ndev * round, "all-reduce");
        set_message(a, N, rank, round);
        NCCL(ncclGroupStart());
        NCCL(ncclSend(a, N, ncclInt32, (rank + 1) % ndev, comm, stream));
        NCCL(ncclRecv(b, N, ncclInt32, (rank + ndev - 1) % ndev, comm, stream));
        NCCL(ncclGroupEnd());
        NCCL(ncclBroadcast(a, a, N, ncclInt32, round % ndev, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
        expect_message(b, N, (rank + ndev - 1) % ndev, round, "ring");
        expect_message(a, N, round % ndev, round, "broadcast");
    }
    NCCL(ncclCommSplit(comm, rank / 2, rank, &part, NULL));
    set_ints(a, N, 1);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, part, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(a, N, rank / 2 * 2 + 1 < ndev ? 2 : 1, "all-reduce of a pair");
    NCCL(ncclCommDestroy(part));
    /* An error of one thread is none of the others'. */
    if (rank == 0) {
        CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(-7));
        CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
    } else {
        CUDA(cudaGetLastError());
    }
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (cudaGetDeviceCount(&ndev) != cudaSuccess || ndev < 1 || ndev > MOST) {
        bail("1 to %d devices are needed", MOST);
    }
    for (int again = 0; again < 2; again++) {
        pthread_t threads[MOST];
        NCCL(ncclGetUniqueId(&id));
        for (long r = 0; r < ndev; r++) {
            pthread_create(&threads[r], NULL, rank_of, (void *)r);
        }
        for (int r = 0; r < ndev; r++) {
            pthread_join(threads[r], NULL);
        }
        point("%d threads, one for each device, time %d", ndev, again + 1);
    }
    return finish();
}
