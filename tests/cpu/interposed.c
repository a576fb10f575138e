/*
 * NCCL's names twice, as in NCCL's own library: a call of ncclAllReduce can be caught and
 * passed on to pncclAllReduce. Linked with the shared library.
 */
#define TAP_ALONE
#include "ints.h"

static int caught;

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
    caught++;
    return pncclAllReduce(sendbuff, recvbuff, count, type, op, comm, stream);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    ncclComm_t comm = NULL;
    NCCL(ncclCommInitAll(&comm, 1, NULL));
    int *a = new_ints(10);
    set_ints(a, 10, 4);
    NCCL(ncclAllReduce(a, a, 10, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    expect_ints(a, 10, 4, "all-reduce");
    expect(caught == 1, "caught %d calls", caught);
    CUDA(cudaFree(a));
    NCCL(ncclCommDestroy(comm));
    point("a call of NCCL caught, and passed on");
    return finish();
}
