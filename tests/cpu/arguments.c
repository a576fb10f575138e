/*
 * What NCCL says to wrong arguments: the code that its manual documents, a text in
 * ncclGetLastError, nothing queued, and a communicator that works on.
 */
#include "ints.h"

static ncclComm_t comm;
static cudaStream_t stream;
static int rank, nranks;
static int *a, *b;

/* The call is refused with this code, and the text says why. */
#define REFUSED(code, call)                                                              \
    do {                                                                                 \
        NCCL_IS(code, call);                                                             \
        const char *text_ = ncclGetLastError(NULL);                                      \
        expect(text_ != NULL && strlen(text_) > 3, "line %d: %s left no text", __LINE__, \
               #call);                                                                   \
    } while (0)
#define INVALID(call) REFUSED(ncclInvalidArgument, call)

static void works_on(void) {
    set_ints(a, 10, 1);
    NCCL(ncclAllReduce(a, b, 10, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_ints(b, 10, nranks, "all-reduce after refused calls");
}

static void null_pointers(void) {
    ncclComm_t c;
    ncclRedOp_t op;
    int n;
    float one = 1;
    ncclResult_t state;
    ncclUniqueId id;
    NCCL(ncclGetUniqueId(&id));
    INVALID(ncclGetVersion(NULL));
    INVALID(ncclGetUniqueId(NULL));
    INVALID(ncclCommInitRank(NULL, 1, id, 0));
    INVALID(ncclCommInitAll(NULL, 1, NULL));
    INVALID(ncclCommInitRank(&c, 0, id, 0));
    INVALID(ncclCommInitAll(&c, -1, NULL));
    point("null pointers and no ranks, creating a communicator");

    INVALID(ncclCommCount(NULL, &n));
    INVALID(ncclCommCount(comm, NULL));
    INVALID(ncclCommUserRank(NULL, &n));
    INVALID(ncclCommUserRank(comm, NULL));
    INVALID(ncclCommCuDevice(NULL, &n));
    INVALID(ncclCommCuDevice(comm, NULL));
    INVALID(ncclCommGetAsyncError(NULL, &state));
    INVALID(ncclCommGetAsyncError(comm, NULL));
    INVALID(ncclCommSplit(NULL, 0, 0, &c, NULL));
    INVALID(ncclCommSplit(comm, 0, 0, NULL, NULL));
    INVALID(ncclCommSplit(comm, -2, 0, &c, NULL));
    expect(ncclMemAlloc(NULL, 64) != ncclSuccess, "ncclMemAlloc took a null pointer");
    INVALID(
        ncclRedOpCreatePreMulSum(NULL, &one, ncclFloat, ncclScalarHostImmediate, comm));
    INVALID(
        ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, comm));
    INVALID(
        ncclRedOpCreatePreMulSum(&op, &one, ncclFloat, ncclScalarHostImmediate, NULL));
    works_on();
    point("null pointers, asking a communicator");

    INVALID(ncclAllReduce(a, b, 10, ncclInt32, ncclSum, NULL, stream));
    INVALID(ncclBroadcast(a, b, 10, ncclInt32, 0, NULL, stream));
    INVALID(ncclBcast(a, 10, ncclInt32, 0, NULL, stream));
    INVALID(ncclReduce(a, b, 10, ncclInt32, ncclSum, 0, NULL, stream));
    INVALID(ncclAllGather(a, b, 1, ncclInt32, NULL, stream));
    INVALID(ncclReduceScatter(a, b, 1, ncclInt32, ncclSum, NULL, stream));
    INVALID(ncclAlltoAll(a, b, 1, ncclInt32, NULL, stream));
    INVALID(ncclGather(a, b, 1, ncclInt32, 0, NULL, stream));
    INVALID(ncclScatter(a, b, 1, ncclInt32, 0, NULL, stream));
    INVALID(ncclSend(a, 10, ncclInt32, 0, NULL, stream));
    INVALID(ncclRecv(a, 10, ncclInt32, 0, NULL, stream));
    works_on();
    point("a null communicator");

    INVALID(ncclAllReduce(NULL, b, 10, ncclInt32, ncclSum, comm, stream));
    INVALID(ncclAllReduce(a, NULL, 10, ncclInt32, ncclSum, comm, stream));
    INVALID(ncclBroadcast(a, NULL, 10, ncclInt32, 0, comm, stream));
    INVALID(ncclBcast(NULL, 10, ncclInt32, 0, comm, stream));
    INVALID(ncclReduce(NULL, b, 10, ncclInt32, ncclSum, 0, comm, stream));
    INVALID(ncclAllGather(NULL, b, 1, ncclInt32, comm, stream));
    INVALID(ncclAllGather(a, NULL, 1, ncclInt32, comm, stream));
    INVALID(ncclReduceScatter(NULL, b, 1, ncclInt32, ncclSum, comm, stream));
    INVALID(ncclReduceScatter(a, NULL, 1, ncclInt32, ncclSum, comm, stream));
    INVALID(ncclAlltoAll(NULL, b, 1, ncclInt32, comm, stream));
    INVALID(ncclAlltoAll(a, NULL, 1, ncclInt32, comm, stream));
    INVALID(ncclGather(NULL, b, 1, ncclInt32, 0, comm, stream));
    INVALID(ncclScatter(a, NULL, 1, ncclInt32, 0, comm, stream));
    INVALID(ncclSend(NULL, 10, ncclInt32, 0, comm, stream));
    INVALID(ncclRecv(NULL, 10, ncclInt32, 0, comm, stream));
    works_on();
    point("null buffers");
}

static void bad_values(void) {
    static const int types[] = {-1, ncclNumTypes, 99};
    for (int i = 0; i < 3; i++) {
        ncclDataType_t type = (ncclDataType_t)types[i];
        INVALID(ncclAllReduce(a, b, 10, type, ncclSum, comm, stream));
        INVALID(ncclBroadcast(a, b, 10, type, 0, comm, stream));
        INVALID(ncclBcast(a, 10, type, 0, comm, stream));
        INVALID(ncclReduce(a, b, 10, type, ncclSum, 0, comm, stream));
        INVALID(ncclAllGather(a, b, 1, type, comm, stream));
        INVALID(ncclReduceScatter(a, b, 1, type, ncclSum, comm, stream));
        INVALID(ncclAlltoAll(a, b, 1, type, comm, stream));
        INVALID(ncclGather(a, b, 1, type, 0, comm, stream));
        INVALID(ncclScatter(a, b, 1, type, 0, comm, stream));
        INVALID(ncclSend(a, 10, type, 0, comm, stream));
        INVALID(ncclRecv(a, 10, type, 0, comm, stream));
    }
    works_on();
    point("data types that do not exist");

    static const int ops[] = {-1, ncclNumOps, ncclNumOps + 7, ncclMaxRedOp};
    for (int i = 0; i < 4; i++) {
        ncclRedOp_t op = (ncclRedOp_t)ops[i];
        INVALID(ncclAllReduce(a, b, 10, ncclInt32, op, comm, stream));
        INVALID(ncclReduce(a, b, 10, ncclInt32, op, 0, comm, stream));
        INVALID(ncclReduceScatter(a, b, 1, ncclInt32, op, comm, stream));
    }
    works_on();
    point("reductions that do not exist");

    const int roots[] = {-1, nranks, 1 << 20};
    for (int i = 0; i < 3; i++) {
        int r = roots[i];
        INVALID(ncclBroadcast(a, b, 10, ncclInt32, r, comm, stream));
        INVALID(ncclBcast(a, 10, ncclInt32, r, comm, stream));
        INVALID(ncclReduce(a, b, 10, ncclInt32, ncclSum, r, comm, stream));
        INVALID(ncclGather(a, b, 1, ncclInt32, r, comm, stream));
        INVALID(ncclScatter(a, b, 1, ncclInt32, r, comm, stream));
        INVALID(ncclSend(a, 10, ncclInt32, r, comm, stream));
        INVALID(ncclRecv(a, 10, ncclInt32, r, comm, stream));
    }
    works_on();
    point("roots and peers outside the communicator");
}

static void reductions(void) {
    ncclRedOp_t op = ncclSum;
    float one = 1;
    for (int i = 0; i < ncclNumOps; i++) {
        INVALID(ncclRedOpDestroy((ncclRedOp_t)i, comm));
    }
    INVALID(ncclRedOpDestroy((ncclRedOp_t)-1, comm));
    INVALID(ncclRedOpDestroy(ncclMaxRedOp, comm));
    INVALID(
        ncclRedOpCreatePreMulSum(&op, &one, ncclNumTypes, ncclScalarHostImmediate, comm));
    NCCL(ncclRedOpCreatePreMulSum(&op, &one, ncclFloat, ncclScalarHostImmediate, comm));
    INVALID(ncclAllReduce(a, b, 10, ncclInt32, op, comm, stream)); /* made for float */
    ncclComm_t other;
    ncclRedOp_t its;
    NCCL(ncclCommSplit(comm, 0, 0, &other, NULL));
    NCCL(ncclRedOpCreatePreMulSum(&its, &one, ncclFloat, ncclScalarHostImmediate, other));
    INVALID(ncclAllReduce(a, b, 10, ncclFloat, its, comm, stream)); /* of the other one */
    INVALID(ncclAllReduce(a, b, 10, ncclFloat, op, other, stream));
    INVALID(ncclRedOpDestroy(its, comm));
    NCCL(ncclRedOpDestroy(its, other));
    NCCL(ncclCommDestroy(other));
    INVALID(ncclRedOpDestroy(op, NULL));
    NCCL(ncclRedOpDestroy(op, comm));
    INVALID(ncclAllReduce(a, b, 10, ncclFloat, op, comm, stream)); /* is gone */
    INVALID(ncclRedOpDestroy(op, comm));
    works_on();
    point("reductions of one's own: of another type, destroyed, built in");
}

static void groups(void) {
    REFUSED(ncclInvalidUsage, ncclGroupEnd());
    NCCL(ncclGroupStart());
    NCCL(ncclGroupEnd());
    REFUSED(ncclInvalidUsage, ncclGroupEnd());
    works_on();
    point("the end of a group that was not begun");

    NCCL(ncclGroupStart());
    NCCL(ncclGroupStart());
    INVALID(ncclAllReduce(a, b, 10, ncclNumTypes, ncclSum, comm, stream));
    ncclGroupEnd();
    NCCL_IS(ncclInvalidArgument, ncclGroupEnd());
    works_on();
    point("a group with a wrong call in it returns that call's error");

    NCCL(ncclGroupStart());
    INVALID(ncclBroadcast(a, b, 10, ncclInt32, nranks, comm, stream));
    NCCL_IS(ncclInvalidArgument, ncclGroupEnd());
    NCCL(ncclGroupStart()); /* and the next one starts afresh */
    NCCL(ncclGroupEnd());
    works_on();
    point("a group after one that failed");
}

static void configurations(void) {
    ncclUniqueId id;
    ncclComm_t c = NULL;
    NCCL(ncclGetUniqueId(&id));
    ncclConfig_t config;
    memset(&config, 0, sizeof config); /* not from the initializer */
    INVALID(ncclCommInitRankConfig(&c, 1, id, 0, &config));
    ncclConfig_t start = NCCL_CONFIG_INITIALIZER;
    config = start;
    config.blocking = 7;
    INVALID(ncclCommInitRankConfig(&c, 1, id, 0, &config));
    config = start;
    config.minCTAs = -3;
    INVALID(ncclCommInitRankConfig(&c, 1, id, 0, &config));
    config = start;
    config.minCTAs = 8;
    config.maxCTAs = 4;
    INVALID(ncclCommInitRankConfig(&c, 1, id, 0, &config));
    point("configurations that mean nothing");
}

static void texts(void) {
    for (int i = 0; i < ncclNumResults; i++) {
        const char *text = ncclGetErrorString((ncclResult_t)i);
        expect(text != NULL && strlen(text) > 3, "code %d is \"%s\"", i,
               text ? text : "");
        for (int j = 0; j < i; j++) {
            expect(strcmp(text, ncclGetErrorString((ncclResult_t)j)) != 0,
                   "codes %d and %d have the same text", i, j);
        }
    }
    const char *unknown = ncclGetErrorString((ncclResult_t)77);
    expect(unknown != NULL && strlen(unknown) > 3, "code 77 has no text");
    INVALID(ncclAllReduce(a, b, 10, ncclNumTypes, ncclSum, comm, stream));
    const char *last = ncclGetLastError(comm);
    expect(last != NULL && strlen(last) > 3, "no text for the communicator");
    point("texts for the codes, and for the last error");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    comm = world_comm();
    rank = tap_rank;
    nranks = tap_ranks;
    CUDA(cudaStreamCreate(&stream));
    a = new_ints(100);
    b = new_ints(100);
    set_ints(a, 100, 1);
    set_ints(b, 100, 1);
    null_pointers();
    bad_values();
    reductions();
    groups();
    configurations();
    texts();
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
