/*
 * helper.c has a thread of last resort: it moves things on when the program's own threads
 * do not.
 *
 * Work is done while the program waits for something, by the thread that waits. A program
 * may also wait by its own means, for a flag that a host function sets, or in MPI. When
 * nobody has looked for 50 ms and there is work, this thread looks until somebody else
 * does again. It sleeps when there is none.
 */
#define _GNU_SOURCE
#include "base/helper.h"
#include "standin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int work, duties, blocked; // blocked: threads that wait elsewhere
static atomic_uint looked;
static atomic_bool forbidden;
static bool started;
static bool (*look)(void);

static enum { AWAKE, NAPPING, ASLEEP } _Atomic sleep;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

static void ring(void) {
    pthread_mutex_lock(&door);
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&door);
}

static void nap(int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&door);
    sleep = NAPPING;
    if (blocked == 0 || work == 0)
        pthread_cond_timedwait(&bell, &door, &until);
    sleep = AWAKE;
    pthread_mutex_unlock(&door);
}

static void sleep_deeply(void) {
    pthread_mutex_lock(&door);
    sleep = ASLEEP;
    // A thread that made work before it could see that we sleep does not ring.
    if (work == 0 && duties == 0)
        pthread_cond_wait(&bell, &door);
    sleep = AWAKE;
    pthread_mutex_unlock(&door);
}

/* Looks until there is no work, or the program has looked itself. */
static void take_over(unsigned before) {
    unsigned idle = 0;
    while (work > 0 && looked == before && !forbidden) {
        base_lock();
        bool news = look();
        base_unlock();
        idle = news ? 0 : idle + 1;
        long wait = idle < 100 ? 1000 : idle < 1000 ? 50000 : 1000000;
        if (idle > 0)
            nanosleep(&(struct timespec){0, wait}, NULL);
    }
}

static void *run(void *unused) {
    (void)unused;
    enum { PATIENCE = 50, OFTEN = 1, LONG = 20 }; // ms; naps
    unsigned before = looked;
    for (int quiet = 0;;) {
        if (quiet < LONG)
            nap(blocked > 0 && work > 0 ? OFTEN : PATIENCE);
        else
            sleep_deeply();
        unsigned after = looked;
        bool nobody_looked = after == before;
        before = after;
        quiet = work == 0 && duties == 0 && nobody_looked ? quiet + 1 : 0;
        if (forbidden || (!nobody_looked && blocked == 0))
            continue;
        if (work > 0) {
            take_over(after);
            before = looked;
        } else if (duties > 0) {
            base_lock();
            while (look())
                ;
            base_unlock();
        }
    }
    return NULL;
}

static void change_of(atomic_int *count, int change, bool (*what)(void)) {
    look = what;
    *count += change;
    if (change <= 0)
        return;
    if (!started) {
        pthread_t thread;
        started = pthread_create(&thread, NULL, run, NULL) == 0;
        if (started) {
            pthread_setname_np(thread, "nccl-cpu"); // not the program's own
            pthread_detach(thread);
        }
    } else if (sleep == ASLEEP || (sleep == NAPPING && blocked > 0)) {
        ring();
    }
}

void helper_work(int change, bool (*what)(void)) {
    change_of(&work, change, what);
}

void helper_duty(int change, bool (*what)(void)) {
    change_of(&duties, change, what);
}

void helper_looked(void) {
    atomic_fetch_add_explicit(&looked, 1, memory_order_relaxed);
}

void helper_allow(bool allowed) {
    forbidden = !allowed;
}

void standin_host_blocks(int begins) {
    blocked += begins ? 1 : -1;
    if (begins && work > 0)
        ring();
    else if (!begins)
        helper_looked();
}
