// A communicator is shrunk twice with the same list, and both that come of it are used in
// turn. The rank that is left out makes no call.
//
// ranks: 3 4
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1), last = nranks - 1;
    ncclComm_t fewer[2];
    use_comm(comm);
    for (int i = 0; i < 2 && rank != last; i++)
        MUST(ncclCommShrink(comm, &last, 1, &fewer[i], NULL, NCCL_SHRINK_DEFAULT));
    for (int i = 1; i >= 0 && rank != last; i--)
        MUST(ncclAllReduce(buf, buf, 4 - i, ncclInt32, ncclSum, fewer[i], stream));
    MUST(cudaStreamSynchronize(stream));
    for (int i = 0; i < 2 && rank != last; i++)
        MUST(ncclCommDestroy(fewer[i]));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
