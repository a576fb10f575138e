/*
 * spins.h: whether a thread looks at the same thing again and again, without a pause.
 */
#ifndef SPINS_H
#define SPINS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPIN_STATES = 16 };

/* Of one thread; zero at first. */
struct spin {
    atomic_uint samples;          // so many were taken
    _Atomic uint64_t state;       // the newest one
    _Atomic uintptr_t counter;    // where the thread was
    uintptr_t stack_end;          // 0: not known yet
    unsigned asked, looked, same; // looked: at so many samples; same: nothing was new
    uint64_t states[SPIN_STATES]; // that were seen
    int nstates;
    double since; // 0: it does not spin
};

/* In the thread itself, before it is looked at. */
void spins_thread(struct spin *spin);
/* In another thread, several times a second: whether that thread has been in a loop for
 * so many seconds that changes nothing, and so goes on until somebody else changes what
 * it looks at. `now`: the time, in seconds. */
bool spins_look(struct spin *spin, int tid, pthread_t thread, double now, double seconds);
void spins_not(struct spin *spin); // it does something else now

#endif
