/*
 * collectives.c has the calls that move data, in collectives or from one rank to another,
 * and the reductions of the program's own. Arguments are checked as NCCL checks them and
 * the work is queued; it happens when a wait advances the stream.
 * NCCL User Guide, "Collective Communication Functions", "Point To Point Communication
 * Functions", "User Defined Reduction Operators".
 */
#include "nccl/calls.h"
#include "cuda/capture.h"
#include "base/hosts.h"
#include "data/number.h"

/* The real NCCL counts the operators of each communicator from the same number; here no
 * two of a process have the same one, so that one of another communicator is noticed. */
static struct redop *redop_of(const struct ncclComm *comm, ncclRedOp_t op) {
    for (int i = 0; i < comm->nredops; i++)
        if (comm->redops[i].op == (int)op && comm->redops[i].live)
            return &comm->redops[i];
    return NULL;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!op || !scalar)
        return nccl_error(ncclInvalidArgument, "%s: %s is NULL", __func__,
                          op ? "scalar" : "op");
    if ((int)type < 0 || type >= ncclNumTypes ||
        (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
        return nccl_error(ncclInvalidArgument, "%s: unknown data type or residence",
                          __func__);
    if (residence == ncclScalarDevice && !memory_find(scalar))
        return nccl_error(ncclInvalidArgument, "%s: scalar is not device memory",
                          __func__);
    static int newest = ncclNumOps - 1;
    int i = 0;
    while (i < comm->nredops && comm->redops[i].live)
        i++;
    if (i == comm->nredops) {
        comm->redops = base_grow(comm->redops, (size_t)(i + 1) * sizeof *comm->redops);
        comm->nredops++;
    }
    comm->redops[i] =
        (struct redop){++newest, true, type, residence == ncclScalarDevice, {0}, scalar};
    if (!comm->redops[i].on_device)
        memcpy(comm->redops[i].value, scalar, type_size(type));
    *op = (ncclRedOp_t)newest;
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    struct redop *redop = redop_of(comm, op);
    if (!redop)
        return nccl_error(ncclInvalidArgument,
                          "%s: not an operator made for this"
                          " communicator",
                          __func__);
    redop->live = false;
    return ncclSuccess;
}

/* --- Collectives and point to point ----------------------------------------------- */

static ncclResult_t check_op(struct call *call, const char *name, ncclRedOp_t op,
                             ncclDataType_t type) {
    struct ncclComm *comm = call->comm;
    const struct redop *redop = redop_of(comm, op);
    if ((int)op < 0 || (op >= ncclNumOps && !redop))
        return nccl_error(ncclInvalidArgument,
                          (int)op < 0
                              ? "%s: op %d is no reduction"
                              : "%s: op %d is none that was made for this communicator",
                          name, (int)op);
    call->facts.redop = op;
    if (!redop)
        return ncclSuccess;
    if (redop->type != type)
        return nccl_error(ncclInvalidArgument,
                          "%s: op was made for data type %d, the data is %d", name,
                          (int)redop->type, (int)type);
    call->facts.redop = PRE_MUL_SUM;
    memcpy(call->scalar, redop->value, sizeof call->scalar);
    if (redop->on_device)
        call->device_scalar = redop->scalar;
    return ncclSuccess;
}

static bool reduction(int kind) {
    return kind == CALL_ALL_REDUCE || kind == CALL_REDUCE || kind == CALL_REDUCE_SCATTER;
}

static bool rooted(int kind) {
    return kind == CALL_BROADCAST || kind == CALL_REDUCE || kind == CALL_GATHER ||
           kind == CALL_SCATTER || point_to_point(kind);
}

struct stream *usable_stream(const char *name, struct ncclComm *comm, cudaStream_t handle,
                             ncclResult_t *result) {
    *result = check_active(name, comm);
    if (*result != ncclSuccess)
        return NULL;
    for (int r = 0; r < comm->nranks; r++)
        if (!wire_reaches(comm->world[r]))
            fail("rank %d on %s: %s comes after MPI_Finalize. The real NCCL would go on; "
                 "here MPI carries its calls.",
                 job_rank, hosts_name(), name);
    struct stream *stream = stream_of(handle, comm->device);
    cudaError_t broken = device_broken(comm->device);
    if (!stream)
        *result = nccl_error(ncclInvalidArgument, "%s: stream is not a stream", name);
    else if (broken || capture_in_the_way(stream))
        *result = nccl_error(
            ncclUnhandledCudaError, "%s: %s", name,
            cudaGetErrorString(broken ? broken : cudaErrorStreamCaptureImplicit));
    return *result == ncclSuccess ? stream : NULL;
}

struct arguments {
    int kind;
    const char *name; // the call that the program made
    const void *sendbuff;
    void *recvbuff;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    const ncclCollConfig_t *config;
};

static ncclResult_t check_arguments(const struct arguments *a,
                                    const struct ncclComm *comm) {
    const ncclCollConfig_t *config = a->config;
    if ((int)a->type < 0 || a->type >= ncclNumTypes)
        return nccl_error(ncclInvalidArgument, "%s: %d is no data type", a->name,
                          (int)a->type);
    if (rooted(a->kind) && (a->root < 0 || a->root >= comm->nranks))
        return nccl_error(
            ncclInvalidArgument, "%s: %s %d, and the communicator has %d ranks", a->name,
            point_to_point(a->kind) ? "peer" : "root", a->root, comm->nranks);
    if (config && config->magic != NCCL_API_MAGIC)
        return nccl_error(ncclInvalidArgument,
                          "%s: config was not set to NCCL_COLLCONFIG_INITIALIZER",
                          a->name);
    if (config && config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
        config->minCTAs > config->maxCTAs)
        return nccl_error(ncclInvalidArgument,
                          "%s: config.minCTAs and config.maxCTAs do not fit", a->name);
    return ncclSuccess;
}

static ncclResult_t move(const struct arguments *a, ncclComm_t comm,
                         cudaStream_t handle) {
    ncclResult_t result;
    struct stream *stream = usable_stream(a->name, comm, handle, &result);
    if (stream)
        result = check_arguments(a, comm);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, a->kind);
    call->facts.type = a->type;
    call->facts.count = a->count;
    call->facts.root = rooted(a->kind) ? a->root : -1;
    call->sendbuff = a->sendbuff;
    call->recvbuff = a->recvbuff;
    call->launched = a->config ? a->config->launchCompletionEvent : NULL;
    if (reduction(a->kind))
        result = check_op(call, a->name, a->op, a->type);
    size_t out = call_sends(call), in = call_receives(call);
    if (result == ncclSuccess && ((out && !a->sendbuff) || (in && !a->recvbuff)))
        result = nccl_error(ncclInvalidArgument, "%s: %s is NULL", a->name,
                            out && !a->sendbuff ? "sendbuff" : "recvbuff");
    // As in NCCL, a collective of nothing is none.
    if (result != ncclSuccess || (a->count == 0 && !point_to_point(a->kind))) {
        call_release(call);
        return in_group(result);
    }
    return in_group(queue_call(call, stream));
}

#define MOVE(kind, send, recv, count, op, root, config)                                 \
    NCCL_CALL;                                                                          \
    return move(                                                                        \
        &(struct arguments){kind, __func__, send, recv, count, type, op, root, config}, \
        comm, stream)

/* A collective, and its form with a configuration. After `root` stands what it is called
 * with between the data type and the communicator. */
#define COLLECTIVE(name, kind, op, root, ...)                                        \
    ncclResult_t name(const void *sendbuff, void *recvbuff, size_t count,            \
                      ncclDataType_t type, __VA_ARGS__ ncclComm_t comm,              \
                      cudaStream_t stream) {                                         \
        MOVE(kind, sendbuff, recvbuff, count, op, root, NULL);                       \
    }                                                                                \
    ncclResult_t name##Config(const void *sendbuff, void *recvbuff, size_t count,    \
                              ncclDataType_t type, __VA_ARGS__ ncclComm_t comm,      \
                              cudaStream_t stream, const ncclCollConfig_t *config) { \
        MOVE(kind, sendbuff, recvbuff, count, op, root, config);                     \
    }
COLLECTIVE(ncclBroadcast, CALL_BROADCAST, ncclSum, root, int root, )
COLLECTIVE(ncclAllReduce, CALL_ALL_REDUCE, op, 0, ncclRedOp_t op, )
COLLECTIVE(ncclReduce, CALL_REDUCE, op, root, ncclRedOp_t op, int root, )
COLLECTIVE(ncclReduceScatter, CALL_REDUCE_SCATTER, op, 0, ncclRedOp_t op, )
COLLECTIVE(ncclAllGather, CALL_ALL_GATHER, ncclSum, 0, )
COLLECTIVE(ncclAlltoAll, CALL_ALL_TO_ALL, ncclSum, 0, )
COLLECTIVE(ncclGather, CALL_GATHER, ncclSum, root, int root, )
COLLECTIVE(ncclScatter, CALL_SCATTER, ncclSum, root, int root, )

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
    MOVE(CALL_BROADCAST, buff, buff, count, ncclSum, root, NULL);
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    MOVE(CALL_SEND, sendbuff, NULL, count, ncclSum, peer, NULL);
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    MOVE(CALL_RECV, NULL, recvbuff, count, ncclSum, peer, NULL);
}
