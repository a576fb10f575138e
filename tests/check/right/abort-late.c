// Rank 0 leaves a call out, and aborts the communicator. The others first queue a call of
// a second one after the old call, and ask for a while whether it is done. Only then do
// they abort the old one, and what they have queued goes on (NCCL User Guide, "Fault
// Tolerance").
#include "../check.h"

#include <unistd.h>

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    ncclComm_t second = new_comm(MPI_COMM_WORLD);
    use_comm(comm); // else the first call itself connects the ranks, and waits
    use_comm(second);
    if (rank == 0)
        MUST(ncclCommAbort(comm));
    else
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof(int), stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, second, stream));
    for (int i = 0; rank != 0 && i < 40; i++) {
        EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
        usleep(10000);
    }
    if (rank != 0)
        MUST(ncclCommAbort(comm));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, 0);
    MUST(cudaFree(buf));
    comm = second;
    finish();
    return 0;
}
