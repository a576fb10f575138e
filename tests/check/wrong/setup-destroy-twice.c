// A second variable holds the same communicator, and both are destroyed. The real NCCL
// frees it twice: a crash, or ncclInvalidArgument.
// rank: all
// alone: a call returns 4
// warn: 3
// off: 3
// expect: NCCL CHECK: setup: ncclCommDestroy uses a communicator after it was destroyed
// expect: rank @any on @host: ncclCommDestroy at @again
// expect: was destroyed at @destroy
#include "../check.h"

int main(void) {
    start();
    ncclComm_t alias = comm;
    MUST(ncclCommDestroy(comm)); // @destroy
#ifdef FIXED
    alias = NULL;
#endif
    if (alias != NULL) {
        MUST(ncclCommDestroy(alias)); // @again
    }
    MUST(cudaStreamDestroy(stream));
    MPI_Finalize();
    return 0;
}
