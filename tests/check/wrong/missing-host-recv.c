// Rank 1 waits in MPI_Recv for a message of the last rank, which has nothing to send and
// is done. So rank 1 never gets to the collective for which rank 0 waits: no cycle, but a
// wait that cannot end. The real program hangs.
// rank: 1
// alone: hangs
// ranks: 3 4 8
// expect: NCCL CHECK: missing:
// expect: rank 0 on @host: waits in ncclAllReduce at @allreduce for ncclAllReduce(count
//     4, ncclInt32, ncclSum) at @allreduce, operation 1 on communicator 1; rank 1 has
//     not begun this operation
// expect: rank 1 on @host: waits in MPI_Recv at @recv, after 0 operations on the
//     communicator
// expect: rank @last on @host: is in MPI_Finalize at @finalize
#include "../check.h"

int main(void) {
    start_mpi();
    start_device();
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
    if (rank < 2) {
        comm = new_comm(pair);
        stream = new_stream();
        int *buf = device_ints(4, rank);
#ifndef FIXED
        if (rank == 1) {
            int token;
            // @recv
            MPI_Recv(&token, 1, MPI_INT, nranks - 1, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
#endif
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream)); // @allreduce
        MUST(cudaStreamSynchronize(stream));                                // @sync
        MUST(cudaFree(buf));
        MUST(cudaStreamDestroy(stream));
        MUST(ncclCommDestroy(comm));
        MPI_Comm_free(&pair);
    }
    MPI_Finalize(); // @finalize
    return 0;
}
