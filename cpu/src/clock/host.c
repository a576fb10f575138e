/*
 * host.c has the host's time on the modelled machine. It passes in calls only.
 */
#include "clock/machine.h"

#include <time.h>

static double host_time, watched; // watched: by MPI_Wtime, and nothing else since then

double clock_host(void) {
    return host_time;
}

void clock_host_until(double time) {
    watched = 0;
    if (time > host_time)
        host_time = time + clock_value[WAIT_US];
}

void clock_host_spends(double seconds) {
    watched = 0;
    host_time += seconds;
}

/* A host that asks again and again until it is so gets there in steps of the same length,
 * however often it really asks. */
void clock_host_polls(double end) {
    watched = 0;
    if (end > host_time)
        host_time += clock_value[ASK_US];
}

/* A program may do nothing but look at the clock until so much time has passed. That
 * time passes, and in reality, too. */
double clock_wtime(void) {
    double step = watched / 8 > 20e-9 ? watched / 8 : 20e-9;
    if (step > 1e-3)
        step = 1e-3;
    watched += step;
    host_time += step;
    if (step > 50e-6)
        nanosleep(&(struct timespec){0, (long)(step * 1e9)}, NULL);
    return host_time;
}
