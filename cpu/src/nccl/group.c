/*
 * group.c has the groups: what is called inside is queued, or begun, when they end.
 * NCCL User Guide, "Group Calls".
 */
#include "nccl/calls.h"
#include "nccl/first_call.h"
#include "nccl/operation.h"

static __thread struct {
    int depth;
    struct call *first, *last;
    struct meeting_call *meetings;
    ncclResult_t error;
} group;

static void release(struct call *calls) {
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        call_release(call);
    }
}

static bool streams_differ(const struct call *calls) {
    for (const struct call *call = calls; call; call = call->next)
        if (!call->stream->capture != !calls->stream->capture)
            return true;
    return false;
}

/* To send to oneself is to receive from oneself, in the same group. Whether both say the
 * same is not asked here, as NCCL does not ask. */
static bool alone_with_itself(const struct call *calls) {
    for (const struct call *a = calls; a; a = a->next) {
        const struct facts *f = &a->facts;
        if (!point_to_point(f->kind) || f->root != f->rank)
            continue;
        // The k-th send goes with the k-th receive.
        int before = 0;
        for (const struct call *b = calls; b != a; b = b->next)
            before += b->comm == a->comm && b->facts.kind == f->kind &&
                      b->facts.root == f->root;
        const struct call *b = calls;
        for (; b; b = b->next)
            if (b->comm == a->comm && point_to_point(b->facts.kind) &&
                b->facts.kind != f->kind && b->facts.root == f->root && before-- == 0)
                break;
        if (!b)
            return true;
    }
    return false;
}

/* Of a communicator that does not block, NCCL puts calls into their streams in the
 * background, and says so ("Group Calls", "Nonblocking Group Operation"). Here they are
 * there at once. */
static ncclResult_t launch(struct call *calls) {
    const char *why = NULL;
    ncclResult_t result = ncclSuccess;
    if (calls && streams_differ(calls))
        why = "some streams of the group are captured and some are not";
    else if (alone_with_itself(calls))
        why =
            "a send to oneself, or a receive from oneself, without the other half in the"
            " same group (is the peer right?)";
    if (why) {
        release(calls);
        return nccl_error(ncclInvalidUsage, "%s", why);
    }
    first_call_begin(calls);
    for (const struct call *call = calls; call; call = call->next) {
        if (!call->comm->blocking)
            result = ncclInProgress;
        else
            wait_until(first_call_over, call->comm);
        if (call->comm->aborted || call->comm->revoked) {
            release(calls);
            return nccl_error(ncclInternalError,
                              "the communicator was given up meanwhile");
        }
    }
    while (calls)
        calls = operation_launch(calls);
    return result;
}

ncclResult_t queue_call(struct call *call, struct stream *stream) {
    call->stream = stream;
    if (group.depth == 0)
        return launch(call);
    if (group.last)
        group.last->next = call;
    else
        group.first = call;
    group.last = call;
    return ncclSuccess;
}

/* --- Calls in which ranks meet: begun all of them, then waited for ----------------- */

bool is_made(const void *comm) {
    const struct ncclComm *made = comm;
    return made->state == READY || made->error != ncclSuccess;
}

static void begin(struct meeting_call *meets) {
    if (meets->made && meets->call)
        comm_promise(meets->made, meets->parent, meets->out);
    ncclResult_t result = meets->begin(meets);
    if (result == ncclSuccess || !meets->made)
        return;
    comm_fail(meets->made, result, nccl_last_error());
}

/* What a call that waits for the others has come to. */
static ncclResult_t outcome(const struct meeting_call *meets) {
    struct ncclComm *made = meets->made;
    // Whether the ranks of a communicator wait is a matter of that one.
    if (!(meets->call ? meets->parent : made)->blocking)
        return ncclInProgress;
    if (!made) {
        wait_for(stream_end(meets->parent->own));
        return ncclSuccess;
    }
    wait_until(is_made, made);
    if (clock_on)
        clock_host_until(made->born);
    if (made->error == ncclSuccess)
        return ncclSuccess;
    ncclResult_t result = nccl_error(made->error, "%s: %s", meets->name, made->why);
    *meets->out = NULL;
    comm_release(made);
    return result;
}

static ncclResult_t meet(struct meeting_call *meetings) {
    ncclResult_t result = ncclSuccess;
    for (struct meeting_call *meets = meetings; meets; meets = meets->next)
        if (!meets->parent)
            meet_announce(&meets->ids.first, meets->rank, meets->nranks, true);
    for (struct meeting_call *meets = meetings; meets; meets = meets->next)
        begin(meets);
    while (meetings) {
        struct meeting_call *meets = meetings;
        meetings = meets->next;
        ncclResult_t one = outcome(meets);
        if (result == ncclSuccess || (result == ncclInProgress && one != ncclSuccess))
            result = one;
        free(meets);
    }
    return result;
}

ncclResult_t meet_soon(struct meeting_call meets) {
    struct meeting_call *mine = base_alloc(sizeof *mine), **end = &group.meetings;
    *mine = meets;
    if (meets.out)
        *meets.out = meets.call ? NULL : meets.made;
    if (group.depth == 0)
        return meet(mine);
    while (*end)
        end = &(*end)->next;
    *end = mine;
    return ncclSuccess;
}

/* --- Beginning and end ------------------------------------------------------------- */

bool group_open(void) {
    return group.depth > 0;
}

ncclResult_t in_group(ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress && group.depth > 0 &&
        group.error == ncclSuccess)
        group.error = result;
    return result;
}

ncclResult_t ncclGroupStart(void) {
    NCCL_CALL;
    group.depth++;
    return ncclSuccess;
}

/* Takes what the group has; false: it is not the outermost one that ends. */
static bool close_group(struct call **calls, struct meeting_call **meetings,
                        ncclResult_t *error) {
    if (--group.depth > 0)
        return false;
    *calls = group.first;
    *meetings = group.meetings;
    *error = group.error;
    group.first = group.last = NULL;
    group.meetings = NULL;
    group.error = ncclSuccess;
    return true;
}

ncclResult_t ncclGroupEnd(void) {
    NCCL_CALL;
    struct call *calls;
    struct meeting_call *meetings;
    ncclResult_t result;
    if (group.depth == 0)
        return nccl_error(ncclInvalidUsage, "ncclGroupEnd: no ncclGroupStart before it");
    if (!close_group(&calls, &meetings, &result))
        return ncclSuccess;
    ncclResult_t met = meet(meetings);
    result = result == ncclSuccess ? met : result;
    if (result == ncclSuccess || result == ncclInProgress) {
        ncclResult_t launched = launch(calls);
        return launched == ncclSuccess ? result : launched;
    }
    release(calls); // NCCL launches nothing of a group in which a call failed
    return result;
}

/* NCCL meets, and launches nothing. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
    NCCL_CALL;
    struct call *calls;
    struct meeting_call *meetings;
    ncclResult_t result;
    if (group.depth == 0)
        return nccl_error(ncclInvalidUsage,
                          "ncclGroupSimulateEnd: no ncclGroupStart before it");
    if (!close_group(&calls, &meetings, &result))
        return ncclSuccess;
    ncclResult_t met = meet(meetings);
    result = result == ncclSuccess ? met : result;
    if (info && info->magic != 0x74685283)
        result = nccl_error(ncclInvalidArgument, "ncclGroupSimulateEnd: simInfo was not"
                                                 " set to NCCL_SIM_INFO_INITIALIZER");
    if (result == ncclSuccess && info && calls && clock_on) {
        info->estimatedTime = (float)(operation_time(calls) * 1e6);
        return result;
    }
    release(calls);
    return result;
}
