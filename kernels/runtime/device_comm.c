/*
 * device_comm.c has the device communicators of nccl_device.h: what the host asks for, so
 * that kernels can wait for those of other ranks. NCCL User Guide, "Device-Initiated
 * Communication".
 */
#include "../include/nccl_device.h"

#include "nccl/calls.h"

#include <stddef.h>
#include "standin.h"

/* What a kernel reads of a window is the beginning of a registration. */
_Static_assert(offsetof(struct registration, parts) ==
                       offsetof(struct ncclWindow_vidmem, lsaParts) &&
                   offsetof(struct registration, lsa_rank) ==
                       offsetof(struct ncclWindow_vidmem, lsaRank) &&
                   offsetof(struct registration, rank) ==
                       offsetof(struct ncclWindow_vidmem, worldRank),
               "struct registration begins as struct ncclWindow_vidmem");

static bool alone_in_process(const struct ncclComm *comm) {
    for (int r = 0; r < comm->nranks; r++)
        if (r != comm->rank && comm->world[r] == comm->world[comm->rank])
            return false;
    return true;
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!props || props->magic != NCCL_API_MAGIC)
        return nccl_error(props ? ncclInvalidUsage : ncclInvalidArgument,
                          "%s: props is not NCCL_COMM_PROPERTIES_INITIALIZER", __func__);
    props->rank = comm->rank;
    props->nRanks = comm->nranks;
    props->cudaDev = props->nvmlDev = comm->device;
    props->deviceApiSupport = alone_in_process(comm);
    props->nLsaTeams = comm->nranks / comm_reach(comm);
    props->hostRmaSupport = true;
    return ncclSuccess;
}

/* What is asked for and not there. */
static const char *refused(const ncclDevCommRequirements_t *reqs) {
    return reqs->resourceRequirementsList ? "resourceRequirementsList"
           : reqs->teamRequirementsList   ? "teamRequirementsList"
           : reqs->lsaMultimem            ? "lsaMultimem"
           : reqs->barrierCount           ? "barrierCount (lsaBarrierCount is there)"
           : reqs->railGinBarrierCount    ? "railGinBarrierCount"
           : reqs->lsaLLA2ABlockCount     ? "lsaLLA2ABlockCount"
           : reqs->ginForceEnable || reqs->ginConnectionType || reqs->ginSignalCount ||
                   reqs->ginCounterCount || reqs->worldGinBarrierCount
               ? "GIN"
               : NULL;
}

static ncclResult_t check(const char *name, const struct ncclComm *comm,
                          const ncclDevCommRequirements_t *reqs) {
    if (reqs->magic != NCCL_API_MAGIC)
        return nccl_error(ncclInvalidUsage,
                          "%s: reqs is not NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER", name);
    if (refused(reqs))
        return nccl_error(ncclInvalidUsage, "%s: CPU build: %s is not there", name,
                          refused(reqs));
    if (reqs->lsaBarrierCount < 0)
        return nccl_error(ncclInvalidArgument, "%s: lsaBarrierCount is %d", name,
                          reqs->lsaBarrierCount);
    if (!alone_in_process(comm))
        return nccl_error(ncclInvalidUsage,
                          "%s: CPU build: each rank must be in a process of its own,"
                          " because kernels of one process run one after another",
                          name);
    return ncclSuccess;
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, ncclDevCommRequirements_t const *reqs,
                               ncclDevComm_t *out) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!reqs || !out)
        return in_group(nccl_error(ncclInvalidArgument, "%s: %s is NULL", __func__,
                                   reqs ? "outDevComm" : "reqs"));
    ncclResult_t result = check(__func__, comm, reqs);
    if (result != ncclSuccess)
        return in_group(result);
    const int team = comm_reach(comm);
    *out = (ncclDevComm_t){.magic = NCCL_API_MAGIC,
                           .version = NCCL_VERSION_CODE,
                           .rank = comm->rank,
                           .nRanks = comm->nranks,
                           .lsaRank = comm->rank % team,
                           .lsaSize = team,
                           .lsaBarrier.nBarriers = reqs->lsaBarrierCount};
    // As cpu_nvcc_nccl.h says; it begins with zeros.
    size_t bytes =
        sizeof(unsigned) * (size_t)(reqs->lsaBarrierCount + 1) * (size_t)(team + 1);
    void *memory;
    result = ncclMemAlloc(&memory, bytes);
    if (result != ncclSuccess)
        return in_group(result);
    memset(shadow(memory), 0, bytes);
    result = ncclCommWindowRegister(comm, memory, bytes, &out->resourceWindow,
                                    NCCL_WIN_COLL_SYMMETRIC);
    if (result != ncclSuccess && result != ncclInProgress)
        ncclMemFree(memory);
    return result;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, ncclDevComm_t const *dev) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!dev)
        return nccl_error(ncclInvalidArgument, "%s: devComm is NULL", __func__);
    const struct registration *window = comm_registered(comm, dev->resourceWindow, true);
    void *memory = window ? window->buffer : NULL;
    ncclResult_t result = ncclCommWindowDeregister(comm, dev->resourceWindow);
    return result == ncclSuccess ? ncclMemFree(memory) : result;
}

const void *standin_device_comm(const void *device_comm) {
    struct ncclDevComm dev;
    memcpy(&dev, device_comm, sizeof dev);
    return dev.magic == NCCL_API_MAGIC && dev.version == NCCL_VERSION_CODE
               ? standin_handle(dev.resourceWindow)
               : NULL;
}
