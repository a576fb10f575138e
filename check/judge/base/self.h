/*
 * self.h: the judge itself, and the threads of the program.
 */
#ifndef SELF_H
#define SELF_H

#include "base/base.h"
#include "base/clock.h"

#include <pthread.h>

struct thread { // one of the program's that has entered
    int number;
    uint64_t name;            // judge_thread_name's; 0: none
    uint64_t joins;           // it waits until the thread of that name has ended; 0
    struct thread_wait *wait; // waits.c's; NULL: it computes
    struct group *group;      // groups.c's; the open one
    int signals; // windows.c's; 1 + the stream of that group's newest put; 0: none
    struct latest *latest;    // issue.c's; what it told of last, should that fail
    struct recent *recent;    // calls.c's; the calls that it told of last
    uint64_t meeting;         // judge_meets's, in which it is; 0: in none
    double asks_since, asked; // it has made no other call since then; 0: it has
    // waits.c's, of a loop that asks: since when its questions are counted, what the
    // thread had worked by then, how many they are; and whether it works between them
    double counted, worked, questions;
    bool works;
    // functions.c's; of the program, that runs in it on a stream
    struct function *function;
    struct thread *next;
};

struct judge {
    struct judge_outside outside;
    struct judge_options options;
    int rank, nranks; // of the world
    char host[JUDGE_HOST];
    bool last; // all has come from the other ranks that will
    bool over; // the job is ending: nothing is judged any more
    pthread_mutex_t lock;
    bool entered;
    double moment; // at which it was asked for since then; 0: it was not
    struct map threads_by_number;
    struct map comm_names; // words.c's: of communicators to which the program gave one
    // The one that is in; NULL: the front's helper, which does nothing that is judged.
    struct thread *threads, *thread, *newest; // newest: the last of them that was in
    // H: what the host knows to have happened. One for all threads: what one of them has
    // waited for it may have told the others, in ways that nobody here sees.
    struct clock known;
    struct order *order;
    struct uses *uses;
    uint64_t groups;   // so far
    uint64_t meetings; // judge_meets's, so far
    uint64_t met;      // the newest of them that was a barrier, and is over
    // windows.c's: where all ranks have met, if what has come from others since then is
    // known; 0: it is not. All that is told of comes after `since`.
    uint64_t epoch;
    struct record since;
    struct own_window *own;
    struct told **kept; // of communicators whose keeper it is
    size_t ntold, nown, own_size, nkept, kept_size;
    struct map places, numbers, sent; // epochs; the keeper's: of ids in clocks, signals
    bool shares_events; // with other processes, which wait for them, or record them
    struct functions *functions;
    struct background *background;
    struct graphs *graphs;
    struct calls *calls;
    struct waits *waits;
    struct stuck *stuck;
    struct reports *reports;
    struct compare *compare;
    struct members *members;
    struct messages *messages;
    struct failures *failures;
    struct round_trips *round_trips;
};

/* The time. One moment for all that is told in one go: clocks are dear where calls are
 * short. */
static inline double now(struct judge *j) {
    if (!j->entered || j->moment == 0)
        j->moment = j->outside.now(j->outside.self);
    return j->moment;
}

#endif
