/*
 * known.c: what the host knows to have happened.
 */
#include "order/known.h"

#include "order/detour.h"
#include "order/functions.h"

void known_changed(struct judge *j) {
    if (j->outside.host_memory)
        j->outside.host_memory(j->outside.self, NULL, NULL);
}

void known_grows(struct judge *j, const struct clock *clock) {
    clock_join(&j->known, clock);
    if (calls_seen(j)) // of other ranks, too
        detour_heard(j);
    known_changed(j);
}

void judge_comm_complete(struct judge *j, int comm) {
    struct clock done = {0};
    calls_complete(j, comm, &done);
    known_grows(j, &done);
    clock_free(&done);
}

void judge_host_function_begins(struct judge *j, int function) {
    function_begins(j, function);
    calls_seen(j);
    known_changed(j);
}

void judge_host_function_ends(struct judge *j, int function) {
    function_ends(j, function);
    calls_seen(j);
}
