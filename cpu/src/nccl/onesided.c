/*
 * onesided.c has the calls that put data into windows of other ranks, signal, and wait
 * for signals. NCCL User Guide, "One-sided communication".
 */
#include "nccl/calls.h"

static ncclResult_t check_index(const char *name, const struct ncclComm *comm, int peer,
                                int index, int context) {
    if (peer < 0 || peer >= comm->nranks)
        return nccl_error(ncclInvalidArgument,
                          "%s: peer %d, and the communicator has %d ranks", name, peer,
                          comm->nranks);
    if (index < 0 || index >= comm->nsignals || context != 0)
        return nccl_error(
            ncclInvalidArgument, "%s: %s is %d, and it must be %s", name,
            context ? "ctx" : "sigIdx", context ? context : index,
            context || comm->nsignals == 1 ? "0" : "less than numRmaSig in ncclConfig_t");
    return ncclSuccess;
}

/* As NCCL, which makes what they need with the first window. */
static ncclResult_t check_rma(const char *name, const struct ncclComm *comm) {
    return comm->rma ? ncclSuccess
                     : nccl_error(ncclInvalidUsage,
                                  "%s: no symmetric window was registered before, nor is "
                                  "NCCL_RMA_EAGER_INIT=1 set",
                                  name);
}

static const struct registration *symmetric_window(const struct ncclComm *comm,
                                                   const void *at) {
    for (const struct registration *one = comm->registrations; one; one = one->next)
        if (one->live && one->window && one->symmetric &&
            (const char *)at >= one->buffer &&
            (const char *)at < one->buffer + one->bytes)
            return one;
    return NULL;
}

ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int index, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream)
        result = check_index(__func__, comm, peer, index, context);
    if (result != ncclSuccess)
        return in_group(result);
    const struct registration *to = comm_registered(comm, window, true);
    const char *why = flags != 0                              ? "flags is not 0"
                      : (int)type < 0 || type >= ncclNumTypes ? "datatype is no data type"
                      : !to    ? "peerWin is not a window of this communicator"
                      : !local ? "localbuff is NULL"
                      : !symmetric_window(comm, local)
                          ? "localbuff lies in no window with NCCL_WIN_COLL_SYMMETRIC"
                          : NULL;
    if (why)
        return in_group(nccl_error(ncclInvalidArgument, "%s: %s", __func__, why));
    struct call *call = call_create(comm, CALL_PUT);
    call->facts.type = type;
    call->facts.count = count;
    call->facts.root = peer;
    call->sendbuff = local;
    call->window = to->number;
    call->offset = offset;
    call->signal = index;
    return in_group(queue_call(call, stream));
}

ncclResult_t ncclSignal(int peer, int index, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream)
        result = check_index(__func__, comm, peer, index, context);
    if (result == ncclSuccess && flags != 0)
        result = nccl_error(ncclInvalidArgument, "%s: flags is not 0", __func__);
    if (result == ncclSuccess)
        result = check_rma(__func__, comm);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, CALL_SIGNAL);
    call->facts.root = peer;
    call->signal = index;
    return in_group(queue_call(call, stream));
}

ncclResult_t ncclWaitSignal(int n, ncclWaitSignalDesc_t *waits, ncclComm_t comm,
                            cudaStream_t handle) {
    NCCL_CALL;
    ncclResult_t result;
    struct stream *stream = usable_stream(__func__, comm, handle, &result);
    if (stream && (!waits || n < 1))
        result = nccl_error(ncclInvalidArgument, "%s: %s", __func__,
                            waits ? "nDesc is less than 1" : "signalDescs is NULL");
    for (int i = 0; result == ncclSuccess && i < n; i++) {
        result =
            check_index(__func__, comm, waits[i].peer, waits[i].sigIdx, waits[i].ctx);
        if (result == ncclSuccess && waits[i].opCnt < 1)
            result = nccl_error(ncclInvalidArgument, "%s: opCnt is %d", __func__,
                                waits[i].opCnt);
    }
    if (result == ncclSuccess)
        result = check_rma(__func__, comm);
    if (result != ncclSuccess)
        return in_group(result);
    struct call *call = call_create(comm, CALL_WAIT_SIGNAL);
    call->nwaits = n;
    call->waits = base_alloc((size_t)n * sizeof *waits);
    memcpy(call->waits, waits, (size_t)n * sizeof *waits);
    return in_group(queue_call(call, stream));
}
