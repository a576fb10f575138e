// MPI sends from pinned memory before the copy into it is done. On a GPU this is the old
// value, or the new one by luck.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: MPI_Allreduce reads a buffer that a queued operation still
//     uses
// expect: rank @any on @host: MPI_Allreduce at @allreduce
// expect: queued: cudaMemcpyAsync at @copy
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1), *mine, sum[4];
    MUST(cudaMallocHost((void **)&mine, sizeof sum)); // @pinned
    MUST(cudaMemcpyAsync(mine, buf, sizeof sum, cudaMemcpyDeviceToHost, stream)); // @copy
#ifdef FIXED
    MUST(cudaStreamSynchronize(stream));
#endif
    MPI_Allreduce(mine, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // @allreduce
    MUST(cudaStreamSynchronize(stream));
    EXPECT(sum[3], nranks);
    MUST(cudaFreeHost(mine));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
