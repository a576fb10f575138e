// Loaded before the programs of the tests: a rank that waits in MPI sleeps after a while.
//
// MPI waits by asking again and again, and calls sched_yield in between. With more ranks
// than processors those that wait take them from those that have something to do.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sched_yield(void) {
    enum { FEW = 50, MANY = 400, PAUSE = 8000000 }; // PAUSE: ns
    static __thread unsigned in_a_row;
    static __thread struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != last.tv_sec || now.tv_nsec - last.tv_nsec > PAUSE)
        in_a_row = 0;
    last = now;
    if (++in_a_row < FEW)
        return (int)syscall(SYS_sched_yield);
    struct timespec sleep = {0, in_a_row < MANY ? 20000 : 100000};
    return nanosleep(&sleep, NULL);
}
