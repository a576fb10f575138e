// Communicators that do not block shrink, split and grow, and one rank comes to each much
// later than the others, who ask until it has.
//
// ranks: 3 4
// timeout: 1
#include "../check.h"

int main(void) {
    start_polled();
    const int newest = nranks - 1;
    int excluded[] = {newest};
    ncclComm_t old = NULL, part, grown;
    ncclUniqueId id;
    if (rank == 1)
        sleep(3);
    if (rank != newest)
        settle(comm, ncclCommShrink(comm, excluded, 1, &old, NULL, 0));
    if (rank == newest)
        sleep(3);
    settle(comm, ncclCommSplit(comm, 0, rank, &part, NULL));
    if (rank == 0)
        MUST(ncclCommGetUniqueId(old, &id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1)
        sleep(3);
    grown = grow_polled(old, &id);
    int *buf = device_ints(4, 1);
    settle(grown, ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, grown, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    MUST(ncclCommAbort(grown));
    MUST(ncclCommAbort(part));
    if (old)
        MUST(ncclCommAbort(old));
    finish_polled();
    return 0;
}
