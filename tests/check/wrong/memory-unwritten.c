// The sum arrives in one buffer, and another one is copied back, which nothing has
// written. Where only some ranks did so, it could be right: a root gathers, and the
// others do not look. And what is timed may hold anything. cudaMalloc does not
// clear memory (its manual page): the copy has what happens to be there.
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: memory: device memory that nothing has written was copied to the
//     host
// expect: @all: cudaMemcpy at @copy, of what cudaMalloc made at @malloc
// expect: Hint: fresh memory holds anything.
#include "../check.h"

int main(void) {
    start();
    int *sums, *spare, host[4];
    int *buf = device_ints(4, rank);
    MUST(cudaMalloc((void **)&sums, sizeof host));
    MUST(cudaMalloc((void **)&spare, sizeof host)); // @malloc
    MUST(ncclAllReduce(buf, sums, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    MUST(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[3], sum_of_ranks());
#else
    MUST(cudaMemcpy(host, spare, sizeof host, cudaMemcpyDeviceToHost)); // @copy
#endif
    MUST(cudaFree(spare));
    MUST(cudaFree(sums));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
