/*
 * destroy.c has the calls that give communicators up, for good or for a while.
 * NCCL User Guide, "Destroying a communicator", "Error handling and communicator abort".
 */
#include "nccl/calls.h"
#include "nccl/first_call.h"
#include "nccl/agreement.h"

struct leave_op {
    struct op op;
    struct ncclComm *comm;
};

static bool step_leave(struct op *op) {
    exchange_leave(((struct leave_op *)op)->comm, op->start);
    return op->done = true;
}

static void drop_leave(struct op *op) {
    comm_release(((struct leave_op *)op)->comm);
}

/* The other ranks are told when all that is queued with the communicator is done. */
static void finalize(struct ncclComm *comm) {
    struct op *op = op_create(sizeof(struct leave_op), step_leave);
    op->drop = drop_leave;
    ((struct leave_op *)op)->comm = comm;
    comm_hold(comm);
    op_after(op, comm->newest);
    op_enqueue(op, comm->own);
    comm->leaving = stream_end(comm->own);
    comm->finalized = true;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (comm->finalized || comm->revoked)
        return nccl_error(ncclInvalidArgument, "ncclCommFinalize: %s",
                          comm->revoked ? "comm was revoked" : "called before");
    finalize(comm);
    if (!comm->blocking)
        return ncclInProgress;
    wait_for(comm->leaving);
    return ncclSuccess;
}

/* NCCL's call is collective among the ranks of a host. The last one of a process waits
 * for those of the others. */
static bool host_has_left(const void *argument) {
    const struct ncclComm *comm = argument;
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && comm->world[r] == job_rank)
            return true;
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && job_same_host(comm->world[r]) &&
            wire_reaches(comm->world[r]))
            return false;
    return true;
}

static void leave_host(struct ncclComm *comm) {
    wait_until(host_has_left, comm);
    for (int r = 0; r < comm->nranks; r++)
        if (!comm->left[r] && job_same_host(comm->world[r]))
            return; // this process has another rank, which will wait
    if (clock_on)
        clock_host_until(comm->left_at);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    NCCL_CALL;
    if (!comm)
        return ncclSuccess; // as NCCL: nothing to do
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    // As on two H200, where it is a matter of time whether anybody has asked.
    if (comm->state == JOINING || (comm->finalized && !comm->blocking && !comm->asked))
        return nccl_error(ncclInvalidArgument, "%s: comm is not ready", __func__);
    if (!comm->finalized)
        finalize(comm);
    comm->destroyed = true;
    if (comm->blocking)
        wait_for(comm->leaving);
    if (comm->blocking && !group_open())
        leave_host(comm);
    comm_release(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    NCCL_CALL;
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    comm->aborted = comm->destroyed = true;
    meet_leave(comm);
    exchange_leave(comm, clock_host());
    if (!group_open())
        wait_for(comm->newest); // as NCCL: for what is before its own in their streams
    comm_break_promises(comm);
    comm_release(comm);
    return ncclSuccess;
}

/* NCCL User Guide, ncclCommRevoke. What the other ranks do does not matter. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
    NCCL_CALL;
    if (!comm)
        return ncclSuccess;
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    if (flags != NCCL_REVOKE_DEFAULT || comm->finalized || comm->revoked)
        return nccl_error(ncclInvalidArgument, "ncclCommRevoke: %s",
                          comm->revoked     ? "called before"
                          : comm->finalized ? "comm was finalized"
                                            : "revokeFlags is not NCCL_REVOKE_DEFAULT");
    wait_until(is_made, comm);
    comm->revoked = true;
    comm_drop(comm);
    if (!comm->blocking)
        return ncclInProgress;
    wait_for(comm->newest);
    return ncclSuccess;
}

/* --- Suspended for a while --------------------------------------------------------- */

static ncclResult_t begin_together(struct meeting_call *meets) {
    agreement_begin(meets->call, NULL, NULL);
    return ncclSuccess;
}

/* All ranks come to it; NCCL waits for the device first. */
static ncclResult_t turn(const char *name, struct ncclComm *comm, bool suspended) {
    if (comm->suspended == suspended)
        return in_group(nccl_error(ncclInvalidUsage, "%s: comm is %s suspended", name,
                                   suspended ? "already" : "not"));
    device_wait(comm->device);
    comm->suspended = suspended;
    if (suspended && !comm->scratch_lent) {
        free(comm->scratch);
        comm->scratch = NULL;
        comm->scratch_bytes = 0;
    }
    struct call *call = call_create(comm, CALL_SUSPEND);
    call->told[0] = suspended;
    return in_group(meet_soon((struct meeting_call){
        .name = name, .begin = begin_together, .parent = comm, .call = call}));
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
    NCCL_CALL;
    CHECK_COMM(comm);
    return flags & NCCL_SUSPEND_MEM ? turn(__func__, comm, true) : ncclSuccess;
}

ncclResult_t ncclCommResume(ncclComm_t comm) {
    NCCL_CALL;
    CHECK_COMM(comm);
    return turn(__func__, comm, false);
}

/* --- Asking ------------------------------------------------------------------------ */

static bool nothing_under_way(const void *argument) {
    const struct ncclComm *comm = argument;
    return is_made(comm) &&
           (comm->blocking ||
            (!comm->meetings && passed(comm->leaving) && first_call_over(comm))) &&
           (!comm->revoked || passed(comm->newest));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    NCCL_CALL;
    ncclResult_t result = check_handle(__func__, comm);
    if (result != ncclSuccess)
        return result;
    if (!error)
        return nccl_error(ncclInvalidArgument,
                          "ncclCommGetAsyncError: asyncError is NULL");
    bool over = poll_until(nothing_under_way, comm);
    if (comm->error != ncclSuccess && strcmp(nccl_last_error(), comm->why) != 0)
        nccl_error(comm->error, "%s", comm->why); // for ncclGetLastError
    *error = comm->error != ncclSuccess ? comm->error
             : over                     ? ncclSuccess
                                        : ncclInProgress;
    comm->asked = comm->finalized && *error != ncclInProgress;
    return ncclSuccess;
}
