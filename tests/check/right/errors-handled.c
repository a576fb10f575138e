// Calls with a wrong argument return their documented error, the program asks for it, and
// goes on. Each has its note, and no more is said.
// expect: NCCL CHECK: note: rank @any: ncclBroadcast at @broadcast returned
//     ncclInvalidArgument (4): ncclBroadcast: root @n, and the communicator has @n ranks
// expect: NCCL CHECK: note: rank @any: ncclAllReduce at @allreduce returned
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @device returned
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    // @broadcast
    EXPECT(ncclBroadcast(buf, buf, 4, ncclInt32, nranks, comm, stream),
           ncclInvalidArgument);
    ncclGetLastError(NULL);
    // @allreduce
    EXPECT(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, NULL, stream),
           ncclInvalidArgument);
    ncclGetLastError(NULL);
    EXPECT(cudaSetDevice(-1), cudaErrorInvalidDevice); // @device
    cudaGetLastError();
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, sum_of_ranks());
    MUST(cudaFree(buf));
    finish();
    return 0;
}
