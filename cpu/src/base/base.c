/*
 * base.c has the lock, the time, the host's memory, and the end of the job.
 */
#define _GNU_SOURCE
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth; // how often this thread holds it
static atomic_int waiting; // threads that want it

static void take(void) {
    if (pthread_mutex_trylock(&lock) == 0)
        return;
    atomic_fetch_add(&waiting, 1);
    pthread_mutex_lock(&lock);
    atomic_fetch_sub(&waiting, 1);
}

void base_lock(void) {
    if (depth++ == 0)
        take();
}

void base_unlock(void) {
    if (--depth == 0)
        pthread_mutex_unlock(&lock);
}

static void nap(long nanoseconds) {
    nanosleep(&(struct timespec){0, nanoseconds}, NULL);
}

void base_pause(unsigned looks) {
    enum { SHORT_WAIT = 2000 };
    int held = depth;
    depth = 0;
    pthread_mutex_unlock(&lock);
    if (looks > SHORT_WAIT)
        nap(200000);
    else if (atomic_load(&waiting) > 0)
        nap(1000); // a mutex is not fair: who waits for it must find it free
    else if (looks % 16 == 15)
        sched_yield(); // MPI yields in between, if it is told to
    take();
    depth = held;
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double base_patience(void) {
    const char *timeout = getenv("NCCL_CHECK_TIMEOUT");
    return 2 * (timeout && atof(timeout) > 0 ? atof(timeout) : 5);
}

/* The C library's, before which this one stands. Where ranks share processors, MPI yields
 * as often as it looks for messages, and if no other rank wants the processor it looks
 * again at once. Whoever has done nothing else for a millisecond sleeps for one. */
__attribute__((visibility("default"))) int sched_yield(void) {
    static const double at_once = 1e-5, long_wait = 1e-3;
    static __thread double since, last;
    const double begun = now();
    int result = 0;
    if (begun - last > at_once)
        since = begun;
    if (begun - since > long_wait) {
        nap(1000000);
        since = now() - 0.9 * long_wait;
    } else {
        result = (int)syscall(SYS_sched_yield);
    }
    last = now();
    return result;
}

uint64_t base_random(void) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint64_t)(now() * 1e9) ^ (uint64_t)getpid() << 40;
    return number | 1;
}

uint64_t base_process(void) {
    static uint64_t number;
    static pid_t of; // a process that was forked off is a different one
    if (of != getpid())
        number = base_random();
    of = getpid();
    return number;
}

void *base_alloc(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        fail("out of host memory");
    return memory;
}

void *base_grow(void *memory, size_t bytes) {
    memory = realloc(memory, bytes ? bytes : 1);
    if (!memory)
        fail("out of host memory");
    return memory;
}

void (*fail_everywhere)(void);

void fail(const char *format, ...) {
    char text[4096]; // so that it is written at once, and nothing of others comes between
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "CPU build: %s\n", text);
    fflush(stderr);
    if (fail_everywhere)
        fail_everywhere();
    _exit(1);
}
