/*
 * background.c: calls of NCCL that are put into their streams only after they have
 * returned.
 *
 * Of a communicator that does not block, a call or the end of its group returns
 * ncclInProgress. Until ncclCommGetAsyncError says ncclSuccess "users are not allowed to
 * issue CUDA kernel to the streams being used by NCCL", nor to call "another NCCL
 * function" (NCCL User Guide, ncclCommGetAsyncError); what comes into the stream
 * meanwhile may come before NCCL's work, and who waits for the stream may not wait for it
 * ("Group Calls", "Nonblocking Group Operation").
 */
#include "history/background.h"

#include "history/streams.h"
#include "ranks/comms.h"

void background_called(struct judge *j, const struct judge_call *call) {
    struct background *all = j->background;
    ROOM(all->at, all->n, &all->size);
    all->at[all->n++] =
        (struct in_background){j->thread, call->comm, call->stream, call->at};
}

static void drop(struct background *all, size_t i) {
    all->at[i] = all->at[--all->n];
}

void judge_call_answered(struct judge *j, bool in_progress) {
    for (size_t i = j->background->n; i-- > 0;)
        if (j->background->at[i].thread == j->thread && in_progress)
            j->background->at[i].thread = NULL;
        else if (j->background->at[i].thread == j->thread)
            drop(j->background, i);
}

void background_ready(struct judge *j, int stream, int comm) {
    for (size_t i = j->background->n; i-- > 0;) {
        const struct in_background *one = &j->background->at[i];
        if (!one->thread && (one->comm == comm || (stream >= 0 && one->stream == stream)))
            drop(j->background, i);
    }
}

static bool uses(struct judge *j, const struct in_background *one,
                 enum background_use what, int number) {
    const struct stream *stream = order_stream(j->order, one->stream);
    return what == USES_STREAM ? one->stream == number
           : what == USES_COMM ? one->comm == number
                               : stream && (number < 0 || stream->device == number);
}

void background_uses(struct judge *j, enum background_use what, int number,
                     struct judge_at at) {
    static const enum finding_name names[] = {
        [USES_STREAM] = FINDING_setup_stream_in_progress,
        [USES_DEVICE] = FINDING_setup_device_in_progress,
        [USES_COMM] = FINDING_setup_comm_in_progress};
    struct background *all = j->background;
    size_t i = all->n;
    while (i > 0 && (all->at[i - 1].thread || !uses(j, &all->at[i - 1], what, number)))
        i--;
    if (i == 0)
        return;
    const struct in_background one = all->at[i - 1];
    struct finding f = finding(names[what], at.site, one.at.site);
    set_here(j, &f, at);
    set_at(j, &f, "pending", one.at);
    set_comm(j, &f, one.comm);
    drop(all, i - 1);
    say(j, &f);
}
