// A receive hangs, and behind it on the stream waits a send on another communicator.
// Rank 0 gives up that one first. Its send has not begun and does not end before the
// receive does, so the abort waits for it. After PyTorch's pull request 150690.
// rank: 0
// alone: hangs
// expect: NCCL CHECK: deadlock: a receive that no send meets, on communicator 1
// expect: rank 0 on @host: waits in ncclCommAbort at @abort for ncclRecv(count 4,
//     ncclInt32, from rank 1) at @recv, operation 4 on communicator 1; rank 1 has not
//     begun the matching ncclSend
// expect: Hint: an abort lasts until the communicator's calls have had their turn on
//     their streams
#include "../check.h"

int main(void) {
    start();
    int *a = device_ints(4, rank);
    int *b = device_ints(4, rank);
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    use_comm(comm); // else the calls themselves connect the ranks, and wait
    use_comm(other);
    for (int i = 0; i < 2 && rank < 2; i++) {
        MUST(ncclGroupStart());
        MUST(ncclSend(a, 4, ncclInt32, 1 - rank, i ? other : comm, stream));
        MUST(ncclRecv(b, 4, ncclInt32, 1 - rank, i ? other : comm, stream));
        MUST(ncclGroupEnd());
        MUST(cudaStreamSynchronize(stream));
    }
    if (rank == 0) {
        MUST(ncclRecv(a, 4, ncclInt32, 1, comm, stream)); // @recv
        MUST(ncclSend(b, 4, ncclInt32, 1, other, stream));
    }
#ifdef FIXED
    MUST(ncclGroupStart());
    MUST(ncclCommAbort(other));
    MUST(ncclCommAbort(comm));
    MUST(ncclGroupEnd());
#else
    MUST(ncclCommAbort(other)); // @abort
    MUST(ncclCommAbort(comm));
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
