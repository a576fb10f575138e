// A message is still expected in pinned memory, and a copy takes it from there: an
// MPI_Irecv is done when MPI_Wait has returned. On a GPU this is the old value, or the
// new one by luck.
// rank: all
// alone: wrong data
// expect: NCCL CHECK: race: cudaMemcpyAsync reads a buffer that MPI still has
// expect: rank @any on @host: cudaMemcpyAsync at @copy reads what
// expect: MPI_Irecv at @irecv writes until its request is completed
// expect: the buffer: 4 bytes of pinned memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(1, 0), *pinned, to = (rank + 1) % nranks;
    int from = (rank + nranks - 1) % nranks;
    MUST(cudaMallocHost((void **)&pinned, sizeof(int))); // @malloc
    MPI_Request request;
    MPI_Irecv(pinned, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request); // @irecv
    MPI_Send(&rank, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
#ifdef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    // @copy
    MUST(cudaMemcpyAsync(buf, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
#ifndef FIXED
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 1, from);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
