/*
 * nccl_ends.c: the calls that give communicators up, or ask how they are.
 */
#include "nccl_front.h"

bool comm_ends(ncclComm_t handle, enum judge_end how, bool waits, struct judge_at at) {
    comm_take_promised(false);
    comm_look_again(handle);
    struct judge *j = front_in();
    struct comm *comm = comm_known(handle);
    // Given up on the way: it was there, as far as it came.
    if (comm && comm->state == COMING) {
        struct comm like = *comm;
        like.state = THERE;
        if (like.id && like.rank >= 0)
            comm_announce(j, handle, &like);
        else
            comm = NULL;
    }
    if (comm) {
        if (how == JUDGE_ABORTED)
            waits = waits && judge_wait_abort(j, comm->number, at);
        judge_comm_ends(j, comm->number, how, at);
        if (waits && how != JUDGE_ABORTED)
            judge_wait_leave(j, comm->number, at);
        if (how == JUDGE_DESTROYED || how == JUDGE_ABORTED)
            comm_gone(handle, comm);
    }
    front_out();
    return comm && waits;
}

/* "All uncompleted operations … will be flushed"; where the communicator blocks, so does
 * the call (NCCL User Guide, "Finalizing a communicator"). So it waits for them first,
 * and then for the other ranks. Returns its number; -1: it does not block, or is not
 * known. */
static int completes(ncclComm_t handle, struct judge_at at) {
    struct comm like = comm_now(handle);
    if (like.state != THERE || like.slow || nccl_group.depth > 0)
        return -1;
    if (!judge_comm_unfinished(front_in(), like.number))
        like.nstreams = 0;
    front_out();
    for (int i = 0; i < like.nstreams; i++)
        if (!stream_capturing(like.streams[i]))
            stream_waited_for(like.streams[i], at);
    return like.number;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    ENTER_COMM(ncclCommFinalize, comm);
    completes(comm, at);
    bool waits = comm_ends(comm, JUDGE_FINALIZED, true, at);
    ncclResult_t result = MEETS(comm_now(comm).id, CALL(PNCCL(ncclCommFinalize), comm));
    struct judge *j = front_in();
    struct comm *ended = comm_known(comm);
    if (ended && result == ncclInProgress)
        ended->ending = true;
    else if (ended && result == ncclSuccess)
        judge_comm_complete(j, ended->number);
    front_out();
    return waits ? nccl_waited(result, at) : nccl_answer(result, at);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    ENTER_COMM(ncclCommDestroy, comm);
    // Where it does not block, ncclCommFinalize only begins: the program asks whether it
    // is done before it destroys it (NCCL's manual, ncclCommFinalize). It may be refused,
    // and is there then.
    if (comm_now(comm).ending) {
        ncclResult_t early = CALL(PNCCL(ncclCommDestroy), comm);
        if (early == ncclSuccess)
            comm_ends(comm, JUDGE_DESTROYED, false, at);
        return nccl_answer(early, at);
    }
    int number = completes(comm, at);
    bool waits = comm_ends(comm, JUDGE_DESTROYED, nccl_group.depth == 0, at);
    ncclResult_t result = MEETS(comm_now(comm).id, CALL(PNCCL(ncclCommDestroy), comm));
    if (number >= 0 && result == ncclSuccess)
        TELL(judge_comm_complete, number);
    return waits ? nccl_waited(result, at) : nccl_answer(result, at);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
    ncclComm_t comm = handle;
    if (python_watchdog())
        return PNCCL(ncclCommGetAsyncError)(handle, error);
    ENTER_COMM(ncclCommGetAsyncError, comm, error);
    ncclResult_t result = CALL(PNCCL(ncclCommGetAsyncError), comm, error);
    if (result != ncclSuccess || !error)
        return nccl_answer(result, at);
    comm_take_promised(*error == ncclSuccess);
    struct judge *j = front_in();
    comm_times_ready += *error == ncclSuccess;
    struct comm *asked = comm_known(comm);
    if (asked && asked->ending && *error == ncclSuccess)
        judge_comm_complete(j, asked->number);
    const bool done = *error != ncclInProgress;
    const bool failed = asked && asked->state == COMING && nccl_failed(*error);
    const struct judge_at made = failed && !asked->failed ? asked->at : at;
    if (failed)
        asked->failed = true;
    if (asked && done)
        asked->ending = false, asked->join.nranks = 0;
    if (asked && asked->join.nranks > 0)
        judge_poll_join(j, &asked->join, at);
    else if (asked && asked->state == COMING && done)
        judge_wait_end(j, *error == ncclSuccess);
    else if (asked && asked->state != COMING)
        judge_poll_comm(j, asked->number, done, at);
    front_out();
    if (*error == ncclSuccess)
        comm_look_again(comm);
    if (timeline_on && *error == ncclSuccess)
        timeline_comm_ready(comm_now(comm).id);
    if (made.site != at.site) // of the call that was to make it
        nccl_answer(*error, made);
    return result;
}
