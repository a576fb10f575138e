/*
 * found_by_front.c: mistakes that the front alone sees.
 */
#include "ranks/calls.h"

void judge_found(struct judge *j, enum judge_found what, int comm, struct judge_at other,
                 struct judge_at at) {
    static const enum finding_name names[] = {
        [JUDGE_SHRINKS_ITSELF] = FINDING_setup_shrinks_itself,
        [JUDGE_NOT_READY] = FINDING_setup_not_ready,
        [JUDGE_TWO_THREADS] = FINDING_setup_two_threads,
        [JUDGE_CAPTURE_BROKEN] = FINDING_setup_capture_broken,
        [JUDGE_REGISTERED_FREED] = FINDING_memory_registered,
        [JUDGE_WINDOW_FREED] = FINDING_memory_registered};
    struct finding f = finding(names[what], at.site, other.site);
    f.hint = what == JUDGE_WINDOW_FREED ? HINT_window_freed : HINT_OF_FINDING;
    set_here(j, &f, at);
    set_comm(j, &f, comm);
    if (other.call)
        set_at(j, &f, "other", other);
    say(j, &f);
}
