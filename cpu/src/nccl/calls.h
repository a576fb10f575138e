/* calls.h: what NCCL's calls share: how they are entered, groups, and what they queue. */
#ifndef CPU_CALLS_H
#define CPU_CALLS_H

#include "data/exchange.h"
#include "cuda/device.h"
#include "start/meet.h"

/* At the entry of a call of NCCL: takes the lock, refuses a host function's call. */
#define NCCL_CALL                                                                       \
    if (in_host_function())                                                             \
        return nccl_error(ncclInvalidUsage, "%s: called by a host function", __func__); \
    if (device_forked())                                                                \
        return nccl_error(ncclUnhandledCudaError,                                       \
                          "%s: this process was forked off by "                         \
                          "one that uses CUDA",                                         \
                          __func__);                                                    \
    LOCKED

/* NULL, a stranger, or a communicator that is no more: ncclInvalidArgument. */
ncclResult_t check_handle(const char *name, const struct ncclComm *comm);
/* Nor may it be used while a call on it is under way. */
ncclResult_t check_comm(const char *name, const struct ncclComm *comm);
/* Nor may work be queued with it when it was revoked. */
ncclResult_t check_active(const char *name, const struct ncclComm *comm);
#define CHECK_COMM(comm)                                       \
    do {                                                       \
        ncclResult_t comm_result = check_comm(__func__, comm); \
        if (comm_result != ncclSuccess)                        \
            return comm_result;                                \
    } while (0)

/* An error inside a group is the group's, too. */
ncclResult_t in_group(ncclResult_t result);
bool group_open(void);

/* Puts the call into the stream, or into the group. */
ncclResult_t queue_call(struct call *call, struct stream *stream);
/* Checks what all calls that are given a stream have in common. NULL: refused, and
 * *result says why. */
struct stream *usable_stream(const char *name, struct ncclComm *comm, cudaStream_t handle,
                             ncclResult_t *result);

/* A call in which ranks meet, on no stream. In a group it begins when the group ends. */
struct meeting_call {
    const char *name;
    ncclResult_t (*begin)(struct meeting_call *meets);
    struct ncclComm *made, **out; // a communicator that it makes, and where it goes
    struct ncclComm *parent;      // that it is called on; NULL: none
    struct call *call;            // that the ranks of `parent` make
    struct ids {                  // with which strangers meet
        ncclUniqueId first;
        uint64_t others;
    } ids;
    int rank, nranks;
    struct meeting_call *next;
};
ncclResult_t meet_soon(struct meeting_call meets);
bool is_made(const void *comm); // it is ready, or has an error

ncclResult_t check_config(const char *name, const ncclConfig_t *config);
struct ncclComm *comm_like(int device, const ncclConfig_t *config,
                           const struct ncclComm *parent);

#endif
