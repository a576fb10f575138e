/*
 * found.c: mistakes that the front alone sees.
 */
#include "ranks/calls.h"

void judge_found(struct judge *j, enum judge_found what, int comm, struct judge_at other,
                 struct judge_at at) {
    static const struct {
        enum finding_name name;
        enum hint_name hint;
    } rows[] = {[JUDGE_SHRINKS_ITSELF] = {FINDING_setup_shrinks_itself, HINT_OF_FINDING},
                [JUDGE_NOT_READY] = {FINDING_setup_not_ready, HINT_OF_FINDING},
                [JUDGE_TWO_THREADS] = {FINDING_setup_two_threads, HINT_OF_FINDING},
                [JUDGE_CAPTURE_BROKEN] = {FINDING_setup_capture_broken, HINT_OF_FINDING},
                [JUDGE_REGISTERED_FREED] = {FINDING_memory_registered, HINT_OF_FINDING},
                [JUDGE_WINDOW_FREED] = {FINDING_memory_registered, HINT_window_freed}};
    struct finding f = finding(rows[what].name, at.site, other.site);
    f.hint = rows[what].hint;
    set_here(j, &f, at);
    set_comm(j, &f, comm);
    if (other.call)
        set_at(j, &f, "other", other);
    say(j, &f);
}
