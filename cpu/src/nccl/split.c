/*
 * split.c has the calls that make communicators of a communicator: split, shrink and
 * grow.
 * NCCL User Guide, "Creating more communicators", "Shrinking a communicator", "Growing a
 * communicator".
 */
#include "nccl/calls.h"
#include "nccl/agreement.h"

static uint64_t mix(uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* The members of the new communicator are n ranks of the old one. */
static void become(struct ncclComm *made, const struct ncclComm *comm, uint64_t id,
                   const int *members, int n) {
    int *world = base_alloc((size_t)comm->nranks * sizeof *world);
    int rank = 0;
    for (int i = 0; i < n; i++) {
        world[i] = comm->world[members[i]];
        if (members[i] == comm->rank)
            rank = i;
    }
    comm_become(made, id, rank, n, world);
    exchange_adopt(made);
    free(world);
}

/* Outside of a group, NCCL says ncclSuccess of what it has only begun (2.32.3). */
static ncclResult_t make(struct meeting_call meets) {
    ncclResult_t result = meet_soon(meets);
    return in_group(result == ncclInProgress ? ncclSuccess : result);
}

/* --- ncclCommSplit ---------------------------------------------------------------- */

/* Ranks of one color form a communicator, in the order of their keys, then of their ranks
 * in the old one. */
static void split_up(struct call *call, struct ncclComm *made) {
    const struct ncclComm *comm = call->comm;
    int64_t color = call->told[0];
    int n = 0, *members = base_alloc((size_t)comm->nranks * sizeof *members);
    for (int r = 0; r < comm->nranks && made; r++) {
        const int64_t *told = agreement_told(call, r);
        if (told[0] != color)
            continue;
        int at = n++;
        for (; at > 0 && agreement_told(call, members[at - 1])[1] > told[1]; at--)
            members[at] = members[at - 1];
        members[at] = r;
    }
    uint64_t id = mix(comm->id ^ mix(call->facts.seq << 32 | (uint32_t)color));
    if (made)
        become(made, comm, id, members, n);
    free(members);
}

static ncclResult_t begin_split(struct meeting_call *meets) {
    agreement_begin(meets->call, meets->made, split_up);
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config) {
    NCCL_CALL;
    CHECK_COMM(comm);
    ncclResult_t result = check_config(__func__, config);
    if (!newcomm)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
    else if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        result = nccl_error(ncclInvalidArgument, "ncclCommSplit: color is %d", color);
    if (result != ncclSuccess)
        return in_group(result);
    bool wanted = color != NCCL_SPLIT_NOCOLOR;
    struct call *call = call_create(comm, CALL_SPLIT);
    call->told[0] = color;
    call->told[1] = key;
    return make((struct meeting_call){
        .name = __func__,
        .begin = begin_split,
        .made = wanted ? comm_like(comm->device, config, comm) : NULL,
        .out = newcomm,
        .parent = comm,
        .call = call});
}

/* --- ncclCommShrink --------------------------------------------------------------- */

/* Calls with the same list belong together, and are counted. */
static uint64_t number_of(struct ncclComm *comm, const bool *excluded) {
    uint64_t list = 0;
    for (int r = 0; r < comm->nranks; r++)
        list = mix(list ^ (excluded[r] ? 2u : 1u));
    struct shrink *shrink = comm->shrinks;
    while (shrink && shrink->list != (uint32_t)list)
        shrink = shrink->next;
    if (!shrink) {
        shrink = base_alloc(sizeof *shrink);
        *shrink = (struct shrink){comm->shrinks, (uint32_t)list, 0};
        comm->shrinks = shrink;
    }
    return list << 32 | ++shrink->calls;
}

static void leave_out(struct call *call, struct ncclComm *made) {
    const struct ncclComm *comm = call->comm;
    int n = 0, *members = base_alloc((size_t)comm->nranks * sizeof *members);
    for (int r = 0; r < comm->nranks; r++)
        if (!call->excluded[r])
            members[n++] = r;
    become(made, comm, mix(comm->id ^ mix(~call->facts.seq)), members, n);
    free(members);
}

static ncclResult_t begin_shrink(struct meeting_call *meets) {
    meets->call->facts.seq = number_of(meets->parent, meets->call->excluded);
    agreement_begin(meets->call, meets->made, leave_out);
    return ncclSuccess;
}

static ncclResult_t check_list(const struct ncclComm *comm, const int *list, int n) {
    if (!list || n < 1)
        return nccl_error(ncclInvalidArgument, "ncclCommShrink: %s",
                          list ? "excludeRanksCount is less than 1"
                               : "excludeRanksList is NULL");
    // NCCL 2.32.3 takes ranks that are not there, and counts them: what it makes then has
    // fewer ranks than members.
    for (int i = 0; i < n; i++) {
        if (list[i] < 0 || list[i] >= comm->nranks)
            return nccl_error(ncclInvalidArgument,
                              "ncclCommShrink: rank %d is to be left out, and there are "
                              "%d ranks",
                              list[i], comm->nranks);
        if (list[i] == comm->rank)
            return nccl_error(ncclInvalidArgument,
                              "ncclCommShrink: rank %d is to be left out, and must not "
                              "call it",
                              comm->rank);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int nexcluded,
                            ncclComm_t *newcomm, ncclConfig_t *config, int flags) {
    NCCL_CALL;
    CHECK_COMM(comm);
    ncclResult_t result = check_config(__func__, config);
    if (!newcomm)
        result = nccl_error(ncclInvalidArgument, "ncclCommShrink: newcomm is NULL");
    else if (flags & ~NCCL_SHRINK_ABORT)
        result =
            nccl_error(ncclInvalidArgument, "ncclCommShrink: unknown flags %d", flags);
    else if (result == ncclSuccess)
        result = check_list(comm, excluded, nexcluded);
    if (result != ncclSuccess)
        return in_group(result);
    if (flags & NCCL_SHRINK_ABORT)
        comm_drop(comm);
    struct call *call = call_create(comm, CALL_SHRINK);
    call->excluded = base_alloc((size_t)comm->nranks * sizeof *call->excluded);
    for (int i = 0; i < nexcluded; i++)
        call->excluded[excluded[i]] = true;
    return make((struct meeting_call){.name = __func__,
                                      .begin = begin_shrink,
                                      .made = comm_like(comm->device, config, comm),
                                      .out = newcomm,
                                      .parent = comm,
                                      .call = call});
}

/* --- ncclCommGrow ----------------------------------------------------------------- */

/* All ranks of the communicator are told of the id, since they are not given it. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!id)
        return nccl_error(ncclInvalidArgument, "%s: uniqueId is NULL", __func__);
    ncclResult_t result = meet_unique_id(id, true);
    if (result != ncclSuccess)
        return result;
    struct facts facts = {.kind = CALL_GROW_ID};
    for (int r = 0; r < comm->nranks; r++) {
        facts.to = r;
        exchange_tell(comm, &facts, id, sizeof *id);
    }
    return ncclSuccess;
}

struct grow_op {
    struct op op;
    struct ncclComm *comm, *made;
    int nranks;
};

static bool step_grow(struct op *op) {
    struct grow_op *grow = (struct grow_op *)op;
    struct ncclComm *made = grow->made;
    ncclUniqueId id;
    op->done = grow->comm->aborted;
    if (op->done)
        comm_fail(made, ncclInvalidUsage, "the communicator was given up meanwhile");
    if (op->done || !exchange_told(grow->comm, CALL_GROW_ID, &id, sizeof id, false))
        return op->done;
    meet_announce(&id, grow->comm->rank, grow->nranks, false);
    ncclResult_t result = meet_join(made, &id, 0, grow->comm->rank, grow->nranks);
    if (result != ncclSuccess)
        comm_fail(made, result, nccl_last_error());
    return op->done = true;
}

static void drop_grow(struct op *op) {
    struct grow_op *grow = (struct grow_op *)op;
    grow->comm->meetings--;
    comm_release(grow->comm);
    comm_release(grow->made);
}

static ncclResult_t begin_grow(struct meeting_call *meets) {
    if (!meets->parent)
        return meet_join(meets->made, &meets->ids.first, 0, meets->rank, meets->nranks);
    struct grow_op *grow = (struct grow_op *)op_create(sizeof *grow, step_grow);
    grow->op.drop = drop_grow;
    grow->comm = meets->parent;
    grow->made = meets->made;
    grow->nranks = meets->nranks;
    comm_hold(grow->comm);
    comm_hold(grow->made);
    grow->comm->meetings++;
    op_enqueue(&grow->op, grow->comm->own);
    return ncclSuccess;
}

static ncclResult_t check_grow(const struct ncclComm *comm, int nranks,
                               const ncclUniqueId *id, int rank) {
    if (comm && rank != -1)
        return nccl_error(ncclInvalidArgument,
                          "ncclCommGrow: a rank of the communicator gives -1 as its "
                          "rank, not %d",
                          rank);
    if (comm && nranks <= comm->nranks)
        return nccl_error(ncclInvalidArgument,
                          "ncclCommGrow: %d ranks are not more than there are already",
                          nranks);
    if (!comm && !id)
        return nccl_error(ncclInvalidArgument, "ncclCommGrow: uniqueId is NULL");
    if (!comm && (rank < 0 || rank >= nranks))
        return nccl_error(ncclInvalidArgument, "ncclCommGrow: rank %d of %d ranks", rank,
                          nranks);
    return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
                          ncclComm_t *newcomm, ncclConfig_t *config) {
    NCCL_CALL;
    ncclResult_t result = comm ? check_comm(__func__, comm) : ncclSuccess;
    if (result == ncclSuccess)
        result = check_config(__func__, config);
    if (result == ncclSuccess && !newcomm)
        result = nccl_error(ncclInvalidArgument, "ncclCommGrow: newcomm is NULL");
    if (result == ncclSuccess)
        result = check_grow(comm, nranks, id, rank);
    if (result != ncclSuccess)
        return in_group(result);
    struct meeting_call meets = {
        .name = __func__,
        .begin = begin_grow,
        .made = comm_like(comm ? comm->device : device_now(), config, comm),
        .out = newcomm,
        .parent = comm,
        .rank = comm ? comm->rank : rank,
        .nranks = nranks};
    if (!comm) {
        meets.ids.first = *id;
    } else if (wire_alone()) {
        // The new ranks of its group, which begin with waiting for all, must not wait for
        // this one. It has been told of the id already.
        queue_look();
        if (exchange_told(comm, CALL_GROW_ID, &meets.ids.first, sizeof *id, false))
            meets.parent = NULL;
    }
    return make(meets);
}
