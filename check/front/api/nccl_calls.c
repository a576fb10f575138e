/*
 * nccl_calls.c: NCCL's calls that move data, alone and in groups.
 */
#include "nccl_registered.h"
#include "timeline_notes.h"
#include "start.h"
#include "talk.h"

ncclResult_t ncclGroupStart(void) {
    ENTER_NCCL(ncclGroupStart);
    ncclResult_t result = CALL(PNCCL(ncclGroupStart));
    if (result != ncclSuccess)
        return nccl_answer(result, at);
    nccl_group.depth++;
    TELL(judge_group_starts, at);
    return result;
}

/* Communicators are about to be made at the end of the group; some of their ranks may be
 * those of other processes. */
static void join_some_here(void) {
    const struct comm *like = &nccl_group.newcomms->like;
    const struct start_join start = {NULL, 0, like->rank, like->nranks};
    start_communicates(newcomms_complete() ? NULL : &start);
}

/* The judge hears of it before the call. True: it is the outermost, and waits. */
static bool group_ends(struct judge_at at) {
    if (nccl_group.depth == 0)
        return false; // an error, which NCCL will name
    if (nccl_group.depth == 1 && nccl_group.newcomms)
        join_some_here();
    struct judge *j = front_in();
    judge_group_ends(j, at);
    bool outermost = --nccl_group.depth == 0;
    if (outermost)
        judge_wait_launch(j, at);
    front_out();
    return outermost;
}

ncclResult_t ncclGroupEnd(void) {
    ENTER_NCCL(ncclGroupEnd);
    bool outermost = group_ends(at);
    if (outermost && timeline_on)
        timeline_group_begins(at);
    ncclResult_t result = CALL(PNCCL(ncclGroupEnd));
    if (outermost && timeline_on)
        timeline_group_ends(nccl_failed(result), result == ncclInProgress);
    if (!outermost)
        return nccl_answer(result, at);
    if (nccl_failed(result) && nccl_group.newcomms)
        talk_settles();
    nccl_returned(result);
    newcomms_end(result);
    nccl_answer(result, at);
    nccl_group.failed = false;
    return result;
}

#ifdef NCCL_SIM_INFO_INITIALIZER
/* The group ends, and nothing of it happens: as if it had failed, only that nobody need
 * look. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
    ENTER_NCCL(ncclGroupSimulateEnd, info);
    bool outermost = group_ends(at);
    ncclResult_t result = CALL(PNCCL(ncclGroupSimulateEnd), info);
    if (outermost && timeline_on)
        timeline_group_begins(at), timeline_group_ends(1, false);
    if (!outermost)
        return nccl_answer(result, at);
    struct judge *j = front_in();
    judge_wait_end(j, true);
    judge_failed(j, false, NULL, "only simulated", at);
    judge_looked(j);
    front_out();
    newcomms_end(ncclInvalidUsage);
    nccl_group.failed = false;
    return result;
}
#endif

static size_t size_of(ncclDataType_t type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (int)type >= 0 && (size_t)type < sizeof sizes / sizeof *sizes ? sizes[type]
                                                                         : 0;
}

/* Memory that was made by unknown means is as good as any: only what CUDA does not know,
 * either, is the host's own, or was freed. */
static bool unknown(struct judge *j, const void *buffer) {
    struct judge_memory memory;
    return !OVER_STANDIN && buffer && !judge_memory_find(j, buffer, &memory);
}

static bool is_nowhere(const void *buffer) {
    struct cudaPointerAttributes attributes = {0};
    int device = current_device(), uses_the_hosts = 0;
    if (CALL(BELOW(cudaPointerGetAttributes), &attributes, buffer) != cudaSuccess ||
        attributes.type != cudaMemoryTypeUnregistered)
        return false;
#if !OVER_STANDIN
    CALL(BELOW(cudaDeviceGetAttribute), &uses_the_hosts, cudaDevAttrPageableMemoryAccess,
         device);
#endif
    (void)device;
    return !uses_the_hosts;
}

static void is_on(struct comm *comm, cudaStream_t stream) {
    for (int i = 0; i < comm->nstreams; i++)
        if (comm->streams[i] == stream)
            return;
    if (comm->nstreams == COMM_STREAMS)
        memmove(comm->streams, comm->streams + 1,
                (size_t)--comm->nstreams * sizeof *comm->streams);
    comm->streams[comm->nstreams++] = stream;
}

#if NCCL_VERSION_CODE >= 23200
/* "The same configuration must be set on every rank; NCCL validates it only locally"
 * (nccl.h). A byte for each field, 0 if it is not set: as in judge_call. Only the event
 * is each rank's own. */
static uint64_t config_of(const ncclCollConfig_t *given, cudaEvent_t *launched) {
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
    if (given && given->magic == c.magic)
        memcpy(&c, given, given->size < sizeof c ? given->size : sizeof c);
    *launched = c.launchCompletionEvent;
    const int fields[] = {c.minCTAs, c.maxCTAs, c.nvlsCTAs, c.cgaClusterSize,
                          c.CTAPolicy};
    uint64_t config = *launched ? 2ull << 40 : 0;
    for (int i = 0; i < 5; i++)
        if (fields[i] != NCCL_CONFIG_UNDEF_INT)
            config |= (uint64_t)(uint8_t)(fields[i] + 1) << 8 * i;
    if (c.algSelection && c.algSelection[0])
        config |= (hash_bytes(c.algSelection, strlen(c.algSelection),
                              c.forceAlgSelection != 0) |
                   1)
                  << 48;
    return config;
}
#else
#define config_of(given, launched) 0
#endif

/* Where the scalar is "will be dereferenced while the collective is running" (nccl.h,
 * ncclScalarResidence_t). An operator may have the number of one that was destroyed. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
    ENTER_COMM(ncclRedOpCreatePreMulSum, op, scalar, type, residence, comm);
    ncclResult_t result =
        CALL(PNCCL(ncclRedOpCreatePreMulSum), op, scalar, type, residence, comm);
    front_in();
    struct comm *known = comm_known(comm);
    if (result == ncclSuccess && known)
        map_put(&known->scalars, (uint64_t)*op,
                residence == ncclScalarDevice ? scalar : NULL);
    front_out();
    return nccl_answer(result, at);
}

/* The judge does not hear of what NCCL will refuse anyway (a root that is none, an
 * unknown type). */
enum judged nccl_judge(const struct nccl_call *as_called, struct judge_at at) {
    const ncclComm_t handle = as_called->comm;
    const cudaStream_t stream = as_called->stream;
    cudaEvent_t launched = NULL;
    struct judge_call call = {.kind = as_called->kind,
                              .type = (int)as_called->type,
                              .root = as_called->root,
                              .count = as_called->count,
                              .type_bytes = size_of(as_called->type),
                              .sendbuff = as_called->send,
                              .recvbuff = as_called->recv,
                              .config = config_of(as_called->config, &launched),
                              .at = at};
    struct comm *comm;
    struct judge *j = comm_in(handle, &comm, at);
    const int device = comm ? comm->device : 0; // its default stream, if that is meant
    bool ask_send = unknown(j, as_called->send), ask_recv = unknown(j, as_called->recv);
    if (ask_send || ask_recv || !stream_is_known(stream, device, &call.stream)) {
        front_out();
        call.send_nowhere = ask_send && is_nowhere(as_called->send);
        call.recv_nowhere = ask_recv && is_nowhere(as_called->recv);
        j = front_in_stream(stream, device, &call.stream);
        comm = comm_known(handle);
    }
    call.launched = launched ? event_number(j, launched) + 1 : 0;
    enum judged judged = NOT_JUDGED;
    struct comm timed = {.state = GONE};
    if (comm && comm->state == GONE) {
        judge_comm_used_after(j, comm->number, at);
        judged = front_checks ? COMM_IS_GONE : NOT_JUDGED;
    } else if (comm && comm->state == THERE && call.stream >= 0 && call.type_bytes > 0 &&
               as_called->root >= NO_ROOT && as_called->root < comm->nranks &&
               (!as_called->op || (int)*as_called->op >= 0)) {
        call.comm = comm->number;
        if (as_called->op)
            call.redop =
                *as_called->op < ncclNumOps ? (int)*as_called->op : JUDGE_PRE_MUL_SUM;
        if (call.redop == JUDGE_PRE_MUL_SUM)
            call.scalar = map_get(&comm->scalars, (uint64_t)*as_called->op);
        registered_place(handle, comm->rank, &call);
        judged = judge_call(j, &call) && front_checks ? JUDGED_WRONG : JUDGED_RIGHT;
        is_on(comm, stream);
        timed = *comm;
        if (nccl_group.depth == 0)
            judge_wait_launch(j, at);
    } else {
        judge_not_told(j);
    }
    front_out();
    if (timeline_on && judged == JUDGED_RIGHT)
        note_call(&call, &timed, as_called->op != NULL, stream, device,
                  nccl_group.depth == 0);
    return judged;
}

ncclResult_t nccl_judged(enum judged judged, ncclResult_t result, struct judge_at at) {
    if (timeline_on && judged == JUDGED_RIGHT) {
        if (nccl_group.depth == 0)
            timeline_group_ends(nccl_failed(result), result == ncclInProgress);
        else if (nccl_failed(result))
            timeline_adds_not();
    }
    return judged == JUDGED_RIGHT && nccl_group.depth == 0 ? nccl_waited(result, at)
                                                           : nccl_answer(result, at);
}

ncclResult_t nccl_refused(struct judge_at at) {
    struct judge *j = front_in();
    if (nccl_group.depth == 0)
        judge_wait_end(j, false);
    judge_failed(j, false, NULL, "its buffers are wrong", at);
    front_out();
    return ncclInvalidArgument;
}

size_t nccl_bytes(size_t count, ncclDataType_t type) {
    return count * size_of(type);
}

struct judge_signal nccl_one_sided(ncclComm_t comm, enum judge_op_kind kind,
                                   const void *reads, size_t bytes, cudaStream_t stream,
                                   struct judge_at at) {
    const struct judge_range range = {reads, bytes, false, true};
    struct judge_call call = {.kind = JUDGE_SEND, .at = at};
    struct judge_signal signal = {.at = at};
    struct judge *j = front_in();
    const struct comm *known = comm_known(comm);
    int device = known ? known->device : -1;
    call.comm = known && known->state == THERE ? known->number : -1;
    signal.comm = judge_usable(j, &call) ? call.comm : -1;
    front_out();
    j = front_in_stream(stream, device, &signal.stream);
    judge_op(j, signal.stream, &range, reads ? 1 : 0, kind, at);
    front_out();
    return signal;
}

#if NCCL_VERSION_CODE >= 22900
ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream) {
    ENTER_COMM(ncclPutSignal, local, count, type, peer, window, offset, signal, context,
               flags, comm, stream);
    struct judge_put put = {.from = offset, .bytes = nccl_bytes(count, type)};
    // Sizes may differ: that of the other rank is known over the stand-in only.
    put.room = OVER_STANDIN ? STANDIN(window_bytes)(comm, window, peer) : 0;
    comm_entered(comm, at);
    struct judge_signal one =
        nccl_one_sided(comm, JUDGE_PUTS, local, put.bytes, stream, at);
    struct judge *j = front_in();
    one.put = registered_window(comm, window, &put) ? &put : NULL;
    bool wrong = one.put && judge_put(j, &one) && front_checks;
    front_out();
    ncclResult_t result =
        wrong ? nccl_refused(at)
              : CALL(PNCCL(ncclPutSignal), local, count, type, peer, window, offset,
                     signal, context, flags, comm, stream);
    comm_left();
    if (!nccl_failed(result))
        TELL(judge_signals, one, peer, signal, 0);
    return wrong ? result : nccl_answer(result, at);
}
#endif
