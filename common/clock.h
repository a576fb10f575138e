/*
 * clock.h: the stopwatch of the lessons that measure.
 *
 * It times batches: some operations that are queued one after the other and waited for
 * once. The lesson queues them and waits, between start and stop:
 *
 *     struct stopwatch watch = {0};
 *     while (!stopwatch_settled(&watch)) {
 *         stopwatch_start(&watch);
 *         for (int i = 0; i < repeat; i++)
 *             queue one operation on the stream
 *         CHECK_CUDA(cudaStreamSynchronize(stream));
 *         stopwatch_stop(&watch, repeat);
 *     }
 *
 * Then watch.seconds is the time of one operation. All ranks do this together and get the
 * same times, so they also leave the loop together.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include "lesson.h"

enum {
    STOPWATCH_FEWEST = 5, // batches, before the median counts
    // With a modelled clock, which says the same again and again, and where calls are
    // slow.
    STOPWATCH_FEW = 2,
    // At most so many; fewer on the CPU build, whose times mean little.
    STOPWATCH_MOST = LESSON_CPU_BUILD ? 10 : 200,
};
static const double stopwatch_least = 0.01;  // seconds of all batches together, at least
static const double stopwatch_enough = 0.03; // after so many seconds it ends in any case
static const double stopwatch_close = 0.02;  // half of the batches are this close: enough
static const double stopwatch_same = 1e-6;   // this close: the clock is a modelled one
static const double stopwatch_slow = LESSON_CPU_BUILD ? 0.05 : 0.001; // for a few bytes

/* Whether even calls of a few bytes are slow here, such as with two ranks on one GPU.
 * Then times mean little, and few are enough. */
static bool stopwatch_hurries;

/* Begins with {0}. */
struct stopwatch {
    double seconds;                 // of one operation: the median of the batches
    double spent;                   // of all batches together
    int nbatches;                   // timed so far
    double batches[STOPWATCH_MOST]; // seconds of one operation in each, shortest first
    double started;                 // when the current batch began: MPI_Wtime()
};

/* Tells the stopwatch how long a call of a few bytes takes, the same time on all ranks,
 * and not the first such call, which also connects them. If that is slow, says so, once.
 */
static inline void stopwatch_hurry(double seconds) {
    if (stopwatch_hurries || lesson_modelled() || seconds < stopwatch_slow)
        return;
    stopwatch_hurries = true;
    if (lesson_self().rank == 0)
        printf("A call of a few bytes takes %.0f ms here (do ranks share a GPU?),"
               " so each time is that of a few calls only.\n",
               seconds * 1e3);
    fflush(stdout);
}

/* How many operations a batch should have: as many as are usual, or where calls are slow
 * only one. */
static inline int stopwatch_repeat(int usual) {
    return stopwatch_hurries ? 1 : usual;
}

/* Begins a batch on all ranks at the same moment, so that none waits for a late one. */
static inline void stopwatch_start(struct stopwatch *watch) {
    lesson_say_whose_times();
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    watch->started = MPI_Wtime();
}

/* The time that this part of the batches stay below: 0.5 gives the median. */
static inline double stopwatch_quantile(const struct stopwatch *watch, double part) {
    const double at = part * (watch->nbatches - 1), *below = &watch->batches[(int)at];
    return (int)at + 1 < watch->nbatches
               ? below[0] + (at - (int)at) * (below[1] - below[0])
               : below[0];
}

/* Ends a batch of `repeat` operations, after the caller has waited for them. The slowest
 * rank's time counts: a collective is over when it is over everywhere. */
static inline void stopwatch_stop(struct stopwatch *watch, int repeat) {
    double seconds = MPI_Wtime() - watch->started;
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    watch->spent += seconds;
    if (watch->nbatches == STOPWATCH_MOST) // forget the longest
        watch->nbatches--;
    int place = watch->nbatches++;
    for (; place > 0 && watch->batches[place - 1] > seconds / repeat; place--)
        watch->batches[place] = watch->batches[place - 1];
    watch->batches[place] = seconds / repeat;
    watch->seconds = stopwatch_quantile(watch, 0.5);
}

/* Whether further batches would hardly move the median. */
static inline bool stopwatch_settled(const struct stopwatch *watch) {
    const bool few = lesson_modelled() || stopwatch_hurries;
    if (watch->nbatches < (few ? STOPWATCH_FEW : STOPWATCH_FEWEST))
        return false;
    if (stopwatch_hurries)
        return true;
    const double half = stopwatch_quantile(watch, 0.75) - stopwatch_quantile(watch, 0.25);
    const double part = half / watch->seconds; // of the median
    return part <= stopwatch_same || watch->nbatches == STOPWATCH_MOST ||
           (watch->spent >= stopwatch_least &&
            (part <= stopwatch_close || watch->spent > stopwatch_enough));
}

#endif
