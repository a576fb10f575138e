/*
 * waits.c: what this process waits for, described for rank 0.
 */
#include "inside.h"
void waits_begin_order(struct judge *j, const struct clock *what, bool poll,
                       struct judge_at at) {
    (void)j, (void)what, (void)poll, (void)at;
}
void waits_begin_launch(struct judge *j, struct judge_at at) {
    (void)j, (void)at;
}
void waits_begin_leave(struct judge *j, int comm, struct judge_at at) {
    (void)j, (void)comm, (void)at;
}
void waits_begin_mpi(struct judge *j, const void *mpi_comm, int peer, bool poll,
                     struct judge_at at) {
    (void)j, (void)mpi_comm, (void)peer, (void)poll, (void)at;
}
void waits_begin_finish(struct judge *j, bool finalize, struct judge_at at) {
    (void)j, (void)finalize, (void)at;
}
void waits_begin_poll_comm(struct judge *j, int comm, struct judge_at at) {
    (void)j, (void)comm, (void)at;
}
void waits_end(struct judge *j, struct clock *what) {
    (void)j, (void)what;
}
void waits_function_queued(struct judge *j, int function, struct position at) {
    (void)j, (void)function, (void)at;
}
void waits_function_begins(struct judge *j, int function) {
    (void)j, (void)function;
}
void waits_function_ends(struct judge *j, int function) {
    (void)j, (void)function;
}
void waits_thread_gone(struct judge *j, struct thread *thread) {
    (void)j, (void)thread;
}
void waits_free(struct judge *j) {
    (void)j;
}
bool waits_tell(struct judge *j) {
    (void)j;
    return false;
}
void waits_receive(struct judge *j, int from, const void *data, size_t bytes) {
    (void)j, (void)from, (void)data, (void)bytes;
}
