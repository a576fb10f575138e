/*
 * buffers.c: the buffers of a call of NCCL, by themselves.
 *
 * NCCL User Guide, "Data Pointers", "In-place Operations".
 */
#include "history/allocations.h"
#include "ranks/comms.h"

enum { NEAR = 4096 }; // bytes: what lies further from a buffer's end is no slip

/* What may have been meant by an address that is nobody's. */
static void report_nowhere(struct judge *j, const struct judge_call *call,
                           const char *which, const void *start) {
    size_t before = allocation_position(j->uses, address_of(start));
    const struct allocation *near = before > 0 ? j->uses->table[before - 1] : NULL;
    bool slip = near && address_of(start) - near->end < NEAR;
    struct finding f =
        finding(slip ? FINDING_memory_begins_after : FINDING_memory_no_gpu_memory,
                call->at.site, 0);
    set(&f, "what", "%s", which);
    set_call(j, &f, call);
    if (slip) {
        set(&f, "byte", "%llu", (unsigned long long)(address_of(start) - near->start));
        set_allocation(j, &f, near);
    }
    say(j, &f);
}

static void report_elsewhere(struct judge *j, const struct judge_call *call,
                             const char *which, const struct allocation *a) {
    struct finding f = finding(FINDING_memory_other_device, call->at.site, 0);
    set(&f, "what", "%s", which);
    set_call(j, &f, call);
    set_allocation(j, &f, a);
    set_comm(j, &f, call->comm);
    say(j, &f);
}

static bool one_buffer(struct judge *j, const struct judge_call *call, const char *which,
                       const void *start, size_t bytes) {
    const struct allocation *a = allocation_find(j->uses, address_of(start));
    const struct freed *freed = allocation_freed(j->uses, address_of(start));
    const struct comm_facts *comm = calls_comm(j, call->comm);
    bool elsewhere = a && judge_on_device(a->kind) && comm && a->device != comm->device;
    if (bytes == 0 || (a && !elsewhere && bytes <= a->end - address_of(start)))
        return false;
    if (!start && !j->options.kernels)
        return false; // ncclInvalidArgument
    const char *words = call_words(call);
    if (elsewhere) {
        report_elsewhere(j, call, which, a);
        return true;
    }
    if (a)
        return memory_too_long(j, a, address_of(start), bytes, which, words, call,
                               call->at);
    if (freed && (judge_on_device(freed->kind) || !j->options.kernels)) {
        memory_report_freed(j, which, words, call->at, freed);
        return true;
    }
    bool nowhere = start == call->sendbuff ? call->send_nowhere : call->recv_nowhere;
    if (j->options.kernels && !nowhere)
        return false; // who knows who made it
    report_nowhere(j, call, which, start);
    return true;
}

/* In place is what NCCL calls it; any other overlap makes garbage. */
static bool not_in_place(struct judge *j, const struct judge_call *call) {
    uint64_t send = address_of(call->sendbuff), recv = address_of(call->recvbuff);
    size_t out = call_send_bytes(j, call), in = call_recv_bytes(j, call);
    const struct comm_facts *comm = calls_comm(j, call->comm);
    if (!comm || !out || !in || send + out <= recv || recv + in <= send)
        return false;
    size_t block = call_bytes(call);
    const char *rule = "sendbuff == recvbuff";
    bool in_place = send == recv;
    switch (call->kind) {
    case JUDGE_ALL_GATHER:
        rule = "sendbuff == recvbuff + rank * sendcount";
        in_place = send == recv + (uint64_t)comm->rank * block;
        break;
    case JUDGE_REDUCE_SCATTER:
        rule = "recvbuff == sendbuff + rank * recvcount";
        in_place = recv == send + (uint64_t)comm->rank * block;
        break;
    case JUDGE_GATHER:
        rule = "sendbuff == recvbuff + root * count";
        in_place = send == recv + (uint64_t)call->root * block;
        break;
    case JUDGE_SCATTER:
        rule = "recvbuff == sendbuff + root * count";
        in_place = recv == send + (uint64_t)call->root * block;
        break;
    case JUDGE_ALL_TO_ALL: // nccl-tests times it so, and never looks at the result
        rule = "never";
        in_place = send == recv && j->uses->kernels;
        break;
    default: break;
    }
    if (in_place)
        return false;
    struct finding f = finding(FINDING_mismatch_in_place, call->at.site, 0);
    set_call(j, &f, call);
    set_comm(j, &f, call->comm);
    set(&f, "rule", "%s", rule);
    say(j, &f);
    return true;
}

static bool other_device(struct judge *j, const struct judge_call *call,
                         const struct stream *stream) {
    const struct comm_facts *comm = calls_comm(j, call->comm);
    if (!comm || !stream || !stream->made.call || stream->device == comm->device)
        return false;
    struct finding f = finding(FINDING_setup_stream_device, call->at.site, 0);
    set_call(j, &f, call);
    set(&f, "other_device", "%d", stream->device);
    set_place(j, &f, "made", stream->made.site);
    set_comm(j, &f, call->comm);
    say(j, &f);
    return true;
}

bool uses_check_call(struct judge *j, const struct judge_call *call,
                     const struct stream *stream) {
    bool wrong =
        one_buffer(j, call, "sendbuff", call->sendbuff, call_send_bytes(j, call)) ||
        one_buffer(j, call, "recvbuff", call->recvbuff, call_recv_bytes(j, call)) ||
        not_in_place(j, call) || other_device(j, call, stream);
    if (!wrong)
        fresh_sent(j, call, stream);
    return wrong;
}

int uses_of_call(struct judge *j, const struct judge_call *call,
                 struct judge_range out[CALL_RANGES]) {
    size_t send = call_send_bytes(j, call), recv = call_recv_bytes(j, call);
    int n = 0;
    if (send)
        out[n++] = (struct judge_range){call->sendbuff, send, false, true};
    if (recv)
        out[n++] = (struct judge_range){call->recvbuff, recv, true, true};
    if (n > 0 && call->scalar)
        out[n++] = (struct judge_range){call->scalar, call->type_bytes, false, true};
    struct allocation *a =
        recv ? NULL : allocation_find(j->uses, address_of(call->recvbuff));
    if (a)
        a->left_alone = call->at;
    return n;
}

/* "The device associated with a particular cuBLAS context is assumed to remain unchanged
 * between the corresponding cublasCreate() and cublasDestroy() calls" (cuBLAS, "cuBLAS
 * Context"). */
bool judge_handle_device(struct judge *j, int number, int device, struct judge_at made,
                         struct judge_at at) {
    const struct stream *stream = order_stream(j->order, number);
    if (!stream || !stream->made.call || stream->device == device)
        return false;
    struct finding f = finding(FINDING_setup_handle_device, at.site, 0);
    set_here(j, &f, at);
    set(&f, "other_device", "%d", stream->device);
    set_place(j, &f, "stream", stream->made.site);
    set(&f, "device", "%d", device);
    set_at(j, &f, "made", made);
    set(&f, "maker", "%s", made.call);
    say(j, &f);
    return true;
}
