/*
 * calls.c: calls in words; what the ranks of a communicator must agree on.
 */
#include "inside.h"
uint64_t calls_issued(struct judge *j, const struct judge_call *call,
                      struct position at) {
    (void)j, (void)call, (void)at;
    return 1;
}
void calls_free(struct judge *j) {
    (void)j;
}
void calls_taken_back(struct judge *j, int comm) {
    (void)j, (void)comm;
}
void calls_joins(struct judge *j, const struct judge_join *join) {
    (void)j, (void)join;
}
void calls_join_failed(struct judge *j) {
    (void)j;
}
void calls_id_made(struct judge *j, uint64_t id, struct judge_at at) {
    (void)j, (void)id, (void)at;
}
int calls_comm_made(struct judge *j, uint64_t id, int rank, int nranks, int device,
                    struct judge_at at) {
    (void)j, (void)id, (void)rank, (void)nranks, (void)device, (void)at;
    return 0;
}
uint64_t calls_split_id(struct judge *j, int comm, int color) {
    (void)j, (void)comm, (void)color;
    return 1;
}
void calls_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at) {
    (void)j, (void)comm, (void)how, (void)at;
}
void calls_comm_used_after(struct judge *j, int comm, struct judge_at at) {
    (void)j, (void)comm, (void)at;
}
const struct comm_facts *calls_comm(struct judge *j, int comm) {
    static const struct comm_facts none = {.nranks = 1};
    (void)j, (void)comm;
    return &none;
}
size_t call_send_bytes(struct judge *j, const struct judge_call *call) {
    (void)j;
    return call->count * call->type_bytes;
}
size_t call_recv_bytes(struct judge *j, const struct judge_call *call) {
    (void)j;
    return call->count * call->type_bytes;
}
const char *call_words(char out[JUDGE_PLACE], const struct judge_call *call) {
    (void)call;
    out[0] = '\0';
    return out;
}
void calls_flush(struct judge *j) {
    (void)j;
}
void calls_failure(struct judge *j, const char *text, struct judge_at at) {
    (void)j, (void)text, (void)at;
}
int calls_unfinished(struct judge *j, int comm, struct judge_call first[4],
                     uint64_t index[4]) {
    (void)j, (void)comm, (void)first, (void)index;
    return 0;
}
void calls_seen(struct judge *j) {
    (void)j;
}
void calls_receive(struct judge *j, int from, const void *data, size_t bytes) {
    (void)j, (void)from, (void)data, (void)bytes;
}
const char *const judge_type_names[] = {"ncclInt8"},
                  *const judge_redop_names[] = {"ncclSum"},
                  *const judge_kind_names[] = {"ncclBroadcast"};
