/*
 * init.c has the calls that make communicators of processes.
 * NCCL User Guide, "Creating a Communicator".
 */
#include "nccl/calls.h"
#include "cuda/capture.h"

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    NCCL_CALL;
    if (!id)
        return nccl_error(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    return meet_unique_id(id, false);
}

ncclResult_t check_config(const char *name, const ncclConfig_t *config) {
    if (!config)
        return ncclSuccess;
    if (config->magic != NCCL_API_MAGIC)
        return nccl_error(ncclInvalidArgument,
                          "%s: config was not set to NCCL_CONFIG_INITIALIZER", name);
    if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
        config->blocking != 1)
        return nccl_error(ncclInvalidArgument, "%s: config.blocking is %d, not 0 or 1",
                          name, config->blocking);
    int least = config->minCTAs, most = config->maxCTAs;
    bool has_least = least != NCCL_CONFIG_UNDEF_INT;
    bool has_most = most != NCCL_CONFIG_UNDEF_INT;
    if ((has_least && least <= 0) || (has_most && most <= 0) ||
        (has_least && has_most && least > most))
        return nccl_error(ncclInvalidArgument,
                          "%s: config.minCTAs and config.maxCTAs do not fit", name);
    return ncclSuccess;
}

/* How many multiprocessors it may take, for the modelled clock; 0: as many as it likes.
 */
static int most_ctas(const ncclConfig_t *config) {
    return config && config->maxCTAs > 0 ? config->maxCTAs : 0;
}

/* One that was built with an older NCCL's header is shorter. */
static int signals_of(const ncclConfig_t *config) {
    bool has = config && config->size >= offsetof(ncclConfig_t, rmaEagerInit);
    return has && config->numRmaSig > 0 ? config->numRmaSig : 1;
}

static bool rma_at_once(const ncclConfig_t *config) {
    const char *text = getenv("NCCL_RMA_EAGER_INIT");
    bool has = config && config->size > offsetof(ncclConfig_t, rmaEagerInit);
    return (text && atoi(text) != 0) || (has && config->rmaEagerInit == 1);
}

struct ncclComm *comm_like(int device, const ncclConfig_t *config,
                           const struct ncclComm *parent) {
    bool inherits = parent && !config;
    bool blocking = inherits ? parent->blocking : !config || config->blocking != 0;
    if (parent && config && config->blocking == NCCL_CONFIG_UNDEF_INT)
        blocking = parent->blocking;
    struct ncclComm *comm = comm_create(device, blocking);
    comm->ranks.ctas = inherits && parent ? parent->ranks.ctas : most_ctas(config);
    comm->ranks.ways = clock_ways();
    comm->nsignals = inherits && parent ? parent->nsignals : signals_of(config);
    comm->rma = rma_at_once(config);
    return comm;
}

/* It allocates, which a capture may forbid: seen on two H100 (NCCL 2.32.3). */
static ncclResult_t check_capture(const char *name) {
    if (!capture_forbids())
        return ncclSuccess;
    return nccl_error(ncclUnhandledCudaError, "%s: Cuda failure %d '%s'", name,
                      cudaErrorStreamCaptureUnsupported,
                      cudaGetErrorString(cudaErrorStreamCaptureUnsupported));
}

static ncclResult_t join(struct meeting_call *meets) {
    return meet_join(meets->made, &meets->ids.first, meets->ids.others, meets->rank,
                     meets->nranks);
}

static ncclResult_t init_rank(ncclComm_t *out, int nranks, const struct ids *ids,
                              int rank, const ncclConfig_t *config, const char *name) {
    int count;
    ncclResult_t result = check_config(name, config);
    if (result != ncclSuccess)
        return in_group(result);
    if (!out)
        return in_group(nccl_error(ncclInvalidArgument, "%s: comm is NULL", name));
    *out = NULL;
    if (nranks < 1 || rank < 0 || rank >= nranks)
        return in_group(nccl_error(ncclInvalidArgument, "%s: rank %d of %d ranks", name,
                                   rank, nranks));
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return in_group(nccl_error(ncclUnhandledCudaError, "%s: no device", name));
    result = check_capture(name);
    if (result != ncclSuccess)
        return in_group(result);
    return in_group(
        meet_soon((struct meeting_call){.name = name,
                                        .begin = join,
                                        .made = comm_like(device_now(), config, NULL),
                                        .out = out,
                                        .ids = *ids,
                                        .rank = rank,
                                        .nranks = nranks}));
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    NCCL_CALL;
    return init_rank(comm, nranks, &(struct ids){id, 0}, rank, NULL, __func__);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
    NCCL_CALL;
    return init_rank(comm, nranks, &(struct ids){id, 0}, rank, config, __func__);
}

/* The ranks meet where the first id was made. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nids,
                                      ncclUniqueId *ids, ncclConfig_t *config) {
    NCCL_CALL;
    if (!ids || nids < 1 || nids > nranks)
        return in_group(nccl_error(ncclInvalidArgument, "%s: %s", __func__,
                                   ids ? "nId is less than 1, or more than nranks"
                                       : "commIds is NULL"));
    struct ids all = {ids[0], meet_other_ids(ids + 1, nids - 1)};
    return init_rank(comm, nranks, &all, rank, config, __func__);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices) {
    NCCL_CALL;
    int count;
    if (!comms || ndev < 1)
        return nccl_error(ncclInvalidArgument, "ncclCommInitAll: %s",
                          comms ? "ndev is less than 1" : "comm is NULL");
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "ncclCommInitAll: no device");
    for (int i = 0; i < ndev; i++) {
        int device = devices ? devices[i] : i;
        if (device_named(__func__, device) != cudaSuccess)
            return nccl_error(ncclInvalidArgument,
                              "ncclCommInitAll: device %d, and there are %d", device,
                              count);
        for (int j = 0; devices && j < i; j++)
            if (devices[j] == device)
                return nccl_error(ncclInvalidUsage,
                                  "ncclCommInitAll: device %d stands twice in devlist",
                                  device);
    }
    ncclResult_t result = check_capture(__func__);
    if (result != ncclSuccess)
        return result;
    for (int i = 0; i < ndev; i++)
        comms[i] = comm_create(devices ? devices[i] : i, true);
    meet_alone(comms, ndev);
    return ncclSuccess;
}
