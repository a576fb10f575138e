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
#include "order/background.h"

#include "ranks/comms.h"

struct background {
    struct pending {
        const struct thread *thread; // that waits for the answer; NULL: it is on the way
        int comm, stream;            // stream -1: of a call that has none
        struct judge_at at;
    } * at;
    size_t n, size;
};

struct background *background_new(void) {
    return must_alloc(sizeof(struct background));
}

void background_free(struct background *background) {
    free(background->at);
    free(background);
}

void background_called(struct judge *j, const struct judge_call *call) {
    struct background *all = j->background;
    ROOM(all->at, all->n, &all->size);
    all->at[all->n++] = (struct pending){j->thread, call->comm, call->stream, call->at};
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

void background_asked(struct judge *j, int stream) {
    for (size_t i = j->background->n; i-- > 0;)
        if (j->background->at[i].stream == stream && !j->background->at[i].thread)
            drop(j->background, i);
}

void background_comm_ready(struct judge *j, int comm) {
    for (size_t i = j->background->n; i-- > 0;)
        if (j->background->at[i].comm == comm && !j->background->at[i].thread)
            drop(j->background, i);
}

static void tell(struct judge *j, enum finding_name name, size_t i, struct judge_at at) {
    const struct pending one = j->background->at[i];
    const struct comm_facts *comm = calls_comm(j, one.comm);
    struct finding f = {.name = name, .site = at.site, .other = one.at.site};
    set_here(j, &f, at);
    set_at(j, &f, "pending", one.at);
    set(&f, "comm", "%d", comm ? comm->number : 0);
    drop(j->background, i);
    say(j, &f);
}

/* The first that is on the way, of a stream, on a device (-1: any) or of a communicator.
 */
static void check(struct judge *j, enum finding_name name, int stream, int device,
                  int comm, struct judge_at at) {
    for (size_t i = j->background->n; i-- > 0;) {
        const struct pending *one = &j->background->at[i];
        const struct stream *its = order_stream(j->order, one->stream);
        if (!one->thread &&
            (name == FINDING_setup_stream_in_progress ? one->stream == stream
             : name == FINDING_setup_comm_in_progress
                 ? one->comm == comm
                 : its && (device < 0 || its->device == device))) {
            tell(j, name, i, at);
            return;
        }
    }
}

void background_uses_stream(struct judge *j, int stream, struct judge_at at) {
    check(j, FINDING_setup_stream_in_progress, stream, 0, 0, at);
}

void background_uses_device(struct judge *j, int device, struct judge_at at) {
    check(j, FINDING_setup_device_in_progress, 0, device, 0, at);
}

void background_uses_comm(struct judge *j, int comm, struct judge_at at) {
    check(j, FINDING_setup_comm_in_progress, 0, 0, comm, at);
}
