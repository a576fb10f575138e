// MPI sends what a copy still brings into memory that the program has registered.
//
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: MPI_Send reads a buffer that a queued operation still uses
// expect: MPI_Send at @send
// expect: cudaMemcpyAsync at @copy
#include "../check.h"

enum { COUNT = 500 };

int main(void) {
    start();
    int *buf = device_ints(COUNT, rank), *own = calloc(COUNT, sizeof *own), got[COUNT];
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    size_t bytes = sizeof got;
    MUST(cudaHostRegister(own, bytes, cudaHostRegisterDefault));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclMax, comm, stream));
    MUST(cudaMemcpyAsync(own, buf, bytes, cudaMemcpyDeviceToHost, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MPI_Request arrives;
    MPI_Irecv(got, COUNT, MPI_INT, from, 0, MPI_COMM_WORLD, &arrives);
    MPI_Send(own, COUNT, MPI_INT, to, 0, MPI_COMM_WORLD); // @send
    MPI_Wait(&arrives, MPI_STATUS_IGNORE);
    MUST(cudaStreamSynchronize(stream));
    EXPECT(got[COUNT - 1], nranks - 1);
    MUST(cudaHostUnregister(own));
    free(own);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
