/*
 * host_knows.c: what the host knows to have happened.
 */
#include "history/host_knows.h"

#include "ranks/round_trips.h"
#include "history/functions.h"

void host_memory_changed(struct judge *j) {
    if (j->outside.host_memory)
        j->outside.host_memory(j->outside.self, NULL, NULL);
}

void host_learns(struct judge *j, const struct clock *clock) {
    clock_join(&j->known, clock);
    if (calls_seen(j)) // of other ranks, too
        round_trip_heard(j);
    host_memory_changed(j);
}

void judge_comm_complete(struct judge *j, int comm) {
    struct clock done = {0};
    calls_complete(j, comm, &done);
    host_learns(j, &done);
    clock_free(&done);
}

void judge_host_function_begins(struct judge *j, int function) {
    function_begins(j, function);
    calls_seen(j);
    host_memory_changed(j);
}

void judge_host_function_ends(struct judge *j, int function) {
    function_ends(j, function);
    calls_seen(j);
}
