// MPI gets the address of device memory. An MPI that was not built for CUDA, such as
// Debian's, ends with a segmentation fault.
// rank: all
// alone: crash
// warn: 1
// expect: NCCL CHECK: memory: a buffer of MPI_Allreduce is device memory
// expect: rank @any on @host: MPI_Allreduce at @allreduce
// expect: the buffer: 16 bytes of device memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *buf, mine[4] = {1, 1, 1, 1}, sum[4];
    MUST(cudaMalloc((void **)&buf, sizeof mine)); // @malloc
    MUST(cudaMemcpy(buf, mine, sizeof mine, cudaMemcpyHostToDevice));
#ifdef FIXED
    MUST(cudaMemcpy(mine, buf, sizeof mine, cudaMemcpyDeviceToHost));
    MPI_Allreduce(mine, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#else
    MPI_Allreduce(buf, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // @allreduce
#endif
    EXPECT(sum[3], nranks);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
