/*
 * query.c has NCCL's errors, and what is asked of a communicator.
 * NCCL User Guide, "Communicator Creation and Management Functions", "Fault Tolerance".
 */
#include "nccl/calls.h"
#include "nccl/first_call.h"

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (see ncclGetLastError)";
    case ncclSystemError: return "unhandled system error (see ncclGetLastError)";
    case ncclInternalError: return "internal error (see ncclGetLastError)";
    case ncclInvalidArgument: return "invalid argument (see ncclGetLastError)";
    case ncclInvalidUsage: return "invalid usage (see ncclGetLastError)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "operation timed out";
    default: return "unknown result code";
    }
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm; // NCCL keeps it per thread, too
    return nccl_last_error();
}

ncclResult_t ncclGetVersion(int *version) {
    if (!version)
        return nccl_error(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t check_handle(const char *name, const struct ncclComm *comm) {
    if (!comm)
        return nccl_error(ncclInvalidArgument, "%s: comm is NULL", name);
    if (!comm_is_one(comm) || comm->destroyed)
        return nccl_error(ncclInvalidArgument, "%s: comm is not a communicator", name);
    return ncclSuccess;
}

ncclResult_t check_comm(const char *name, const struct ncclComm *comm) {
    ncclResult_t result = check_handle(name, comm);
    if (result != ncclSuccess)
        return result;
    if (comm->error != ncclSuccess)
        return nccl_error(comm->error, "%s: %s", name, comm->why);
    if (comm->state == JOINING ||
        (!comm->blocking && (comm->meetings || !first_call_over(comm))))
        return nccl_error(ncclInvalidArgument,
                          "%s: comm is used before the call before returned ncclSuccess",
                          name);
    return ncclSuccess;
}

ncclResult_t check_active(const char *name, const struct ncclComm *comm) {
    ncclResult_t result = check_comm(name, comm);
    if (result != ncclSuccess)
        return result;
    if (comm->revoked || comm->finalized)
        return nccl_error(ncclInvalidUsage, "%s: comm was %s", name,
                          comm->revoked ? "revoked" : "finalized");
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!count)
        return nccl_error(ncclInvalidArgument, "ncclCommCount: count is NULL");
    *count = comm->nranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!device)
        return nccl_error(ncclInvalidArgument, "ncclCommCuDevice: device is NULL");
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!rank)
        return nccl_error(ncclInvalidArgument, "ncclCommUserRank: rank is NULL");
    *rank = comm->rank;
    return ncclSuccess;
}

/* NCCL has no memory of its own here but the room for what comes from other ranks. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!value)
        return nccl_error(ncclInvalidArgument, "ncclCommMemStats: value is NULL");
    switch (stat) {
    case ncclStatGpuMemSuspend:
    case ncclStatGpuMemTotal: *value = comm->scratch_bytes; break;
    case ncclStatGpuMemSuspended: *value = comm->suspended; break;
    case ncclStatGpuMemPersist: *value = 0; break;
    default:
        return nccl_error(ncclInvalidArgument, "ncclCommMemStats: stat is %d", (int)stat);
    }
    return ncclSuccess;
}
