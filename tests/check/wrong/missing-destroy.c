// Rank 1 leaves early and does not destroy the communicator. The others wait for it in
// ncclCommDestroy; so they do with the real NCCL over NVLink and shared memory. Over
// sockets the program ends.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclCommDestroy waits for ranks that never come
// expect: rank 0 on @host: waits in ncclCommDestroy at @destroy, of communicator 1;
//     rank 1 has not begun the same call
// expect: rank 1 on @host: is in MPI_Finalize at @early
// expect: Hint: ncclCommDestroy waits for all ranks of the same node
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    MUST(cudaStreamDestroy(stream));
#ifndef FIXED
    if (rank == 1) {
        MPI_Finalize(); // @early
        return 0;
    }
#endif
    MUST(ncclCommDestroy(comm)); // @destroy
    MPI_Finalize();
    return 0;
}
