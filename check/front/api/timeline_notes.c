/*
 * timeline_notes.c: calls and copies, as a timeline shows them.
 */
#include "timeline_notes.h"

void note_call(const struct judge_call *call, const struct comm *comm, bool reduces,
               cudaStream_t stream, int device, bool alone) {
    bool pair = call->kind == JUDGE_SEND || call->kind == JUDGE_RECV;
    const struct timeline_op op = {.name = call->at.call,
                                   .at = call->at,
                                   .collective = !pair,
                                   .bytes = call->count * call->type_bytes,
                                   .count = call->count,
                                   .number = comm->number + 1,
                                   .rank = comm->rank,
                                   .type = call->type,
                                   .redop = reduces ? call->redop : -1,
                                   .root = pair ? -1 : call->root,
                                   .peer = pair ? call->root : -1,
                                   .comm = comm->id};
    timeline_adds(&op, stream, device);
    if (alone)
        timeline_group_begins(call->at);
}

static const char *copy_name(const struct copy *copy) {
    static const char *const names[2][2] = {
        {"copy host to host", "copy host to device"},
        {"copy device to host", "copy device to device"}};
    const struct copy_side *to = &copy->to, *from = &copy->from;
    bool set = from->place == UNKNOWN;
    if (set)
        return "set";
    return names[from->place == DEVICE || from->place == MANAGED]
                [to->place == DEVICE || to->place == MANAGED];
}

struct timeline_op *copy_op(const struct copy *copy, struct judge_at at,
                            struct timeline_op *out) {
    const struct rows *rows = &copy->to.rows;
    *out = (struct timeline_op){.name = copy_name(copy),
                                .at = at,
                                .waits = copy->waits != NO,
                                .may_return_at_once = copy->waits == PERHAPS,
                                .done = copy->waits == ALL,
                                .bytes = rows->width * rows->height};
    return out;
}
