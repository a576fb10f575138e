/*
 * tasks.c: the program's threads: which of them wait for one another.
 *
 * A thread that has told something computes, until it is known to wait. pthread_join
 * comes here. What else a thread does without CUDA, NCCL and MPI, the system knows: who
 * sleeps in a futex of its own process, without a limit of time, is woken by another
 * thread or by nobody (futex(2), FUTEX_PRIVATE_FLAG; proc(5), /proc/pid/syscall): that is
 * what condition variables, mutexes, futures and barriers of threads are made of.
 */
#define _GNU_SOURCE
#include "tasks.h"
#include "front.h"
#include "spins.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

/* --- All threads ------------------------------------------------------------------ */

struct known {
    int tid;
    pthread_t self; // not of those that were made by other ways
    int number;     // the judge's; 0: it has told nothing
    bool theirs;    // of a library below
    // Of calls that it is in. What it sleeps in there is the library's, a lock whose
    // owner moves a gigabyte, and not the program's.
    const volatile int *depth;
    // The helper's: how often it had gone to sleep, and since when that has not changed.
    unsigned long switches;
    double since;
    double worked, counted; // a second ago
    bool idle;
    double napping, napped; // since then (0: it does not); looked at last
    unsigned long naps;
    double busy; // since then it has not gone to sleep
    unsigned long slept;
    struct spin spin;
    struct known *next;
};
static struct known first, *all = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // taken inside the judge's
static __thread struct known *me;

static void enter(struct known *thread) {
    thread->tid = (int)syscall(SYS_gettid);
    thread->self = pthread_self();
    thread->depth = &front_depth;
    me = thread;
    spins_thread(&thread->spin);
    pthread_mutex_lock(&lock);
    thread->next = all;
    all = thread;
    pthread_mutex_unlock(&lock);
}

/* On GPUs the libraries have many threads of their own, made by other ways: there only
 * those are counted that the program has made and that have told nothing. */
static atomic_int silent;
static __thread bool is_silent;
static atomic_int alive; // of the program's, beside the first; they may be about to begin

static void no_longer_silent(void) {
    if (is_silent)
        atomic_fetch_sub(&silent, 1);
    is_silent = false;
}

static void leave(void *thread) {
    no_longer_silent();
    spins_thread(NULL);
    if (!((struct known *)thread)->theirs)
        atomic_fetch_sub(&alive, 1);
    pthread_mutex_lock(&lock);
    struct known **at = &all;
    while (*at && *at != thread)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    pthread_mutex_unlock(&lock);
    me = NULL;
    free(thread);
}

/* It tells the judge of something for the first time. */
static void told(int number) {
    if (me)
        me->number = number;
    if (number)
        no_longer_silent();
}

void tasks_begin(void) {
    first.tid = (int)getpid();
    first.self = pthread_self();
    first.depth = &front_depth;
    me = &first;
    spins_thread(&first.spin);
    front_new_thread = told;
}

bool tasks_is_own(void *return_address) {
    return !front_theirs(return_address) && (!me || !me->theirs);
}

struct start {
    void *(*function)(void *);
    void *argument;
    struct known *known;
};

static void *run(void *data) {
    struct start start = *(struct start *)data;
    void *result;
    free(data);
    enter(start.known);
    is_silent = !standin_host_blocks;
    pthread_cleanup_push(leave, start.known);
    result = start.function(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

FIND_BELOW(pthread_create,
           int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
               void *(*function)(void *), void *argument) {
    if (!below_pthread_create)
        find_pthread_create();
    bool theirs = front_depth > 0 || front_theirs(__builtin_return_address(0));
    struct start *start = malloc(sizeof *start);
    struct known *known = calloc(1, sizeof *known);
    if (!start || !known || (theirs && !standin_host_blocks)) {
        free(start);
        free(known);
        return below_pthread_create(thread, attributes, function, argument);
    }
    known->theirs = theirs;
    if (!theirs)
        atomic_fetch_add(&alive, 1);
    if (!standin_host_blocks)
        atomic_fetch_add(&silent, 1);
    *start = (struct start){function, argument, known};
    int error = below_pthread_create(thread, attributes, run, start);
    if (error && !standin_host_blocks)
        atomic_fetch_sub(&silent, 1);
    if (error && !theirs)
        atomic_fetch_sub(&alive, 1);
    if (error) {
        free(start);
        free(known);
    }
    return error;
}

bool tasks_several(void) {
    return atomic_load(&alive) > 0;
}

/* --- Waiting for one to end ------------------------------------------------------- */

static bool tells_wait(uint64_t thread, struct judge_at at) {
    if (front_passes() || !me || me->number == 0)
        return false;
    judge_wait_thread(front_in(), thread, at);
    front_out();
    return true;
}

static void tells_end(void) {
    judge_wait_end(front_in(), true);
    front_out();
}

#define JOINS(name, thread_type, result_type)                              \
    FIND_BELOW(name, int (*)(thread_type, result_type *))                  \
    __attribute__((visibility("default"))) int name(thread_type thread,    \
                                                    result_type *result) { \
        if (!below_##name)                                                 \
            find_##name();                                                 \
        AT_HERE;                                                           \
        bool told = tells_wait((uint64_t)thread, at);                      \
        int error = below_##name(thread, result);                          \
        if (told)                                                          \
            tells_end();                                                   \
        return error;                                                      \
    }
JOINS(pthread_join, pthread_t, void *)
JOINS(thrd_join, thrd_t, int)

/* --- Asleep ----------------------------------------------------------------------- */

static bool read_file(int tid, const char *name, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, out, size - 1) : -1;
    if (file >= 0)
        close(file);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The system's call that the thread is in, and its first arguments. False: in none. */
struct call {
    long number;
    unsigned long argument[4];
};
static bool call_of(int tid, struct call *call) {
    char text[256];
    unsigned long *a = call->argument;
    return read_file(tid, "syscall", text, sizeof text) &&
           sscanf(text, "%ld 0x%lx 0x%lx 0x%lx 0x%lx", &call->number, &a[0], &a[1], &a[2],
                  &a[3]) == 5;
}

static bool in_futex(int tid) {
    struct call call;
    return call_of(tid, &call) && call.number == SYS_futex &&
           (call.argument[1] & FUTEX_PRIVATE_FLAG) && call.argument[3] == 0;
}

static unsigned long switches_of(int tid) {
    static const char name[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    const char *at =
        read_file(tid, "status", text, sizeof text) ? strstr(text, name) : NULL;
    return at ? strtoul(at + sizeof name - 1, NULL, 10) : 0;
}

/* For a second at least. */
static bool sleeps(struct known *thread, double now) {
    if ((thread->depth && *thread->depth > 0) || !in_futex(thread->tid)) {
        thread->since = 0;
        return false;
    }
    unsigned long switches = switches_of(thread->tid);
    if (thread->since == 0 || thread->switches != switches)
        thread->since = now;
    thread->switches = switches;
    return switches > 0 && now - thread->since >= 1;
}

/* Threads that were made by other ways than pthread_create here. */
static int strangers(void (*each)(int tid)) {
    DIR *folder = opendir("/proc/self/task");
    int n = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int tid = atoi(entry->d_name);
        const struct known *t = all;
        while (t && t->tid != tid)
            t = t->next;
        if (tid == 0 || t)
            continue;
        n++;
        if (each)
            each(tid);
    }
    if (folder)
        closedir(folder);
    return n;
}

static void is_theirs(int tid) {
    struct known *thread = calloc(1, sizeof *thread);
    if (!thread)
        return;
    *thread = (struct known){.tid = tid, .theirs = true, .next = all};
    all = thread;
}

void tasks_of_libraries(void) {
    pthread_mutex_lock(&lock);
    strangers(is_theirs);
    pthread_mutex_unlock(&lock);
}

bool tasks_asleep(int number, double now) {
    bool asleep = false;
    pthread_mutex_lock(&lock);
    for (struct known *t = all; t && standin_host_blocks; t = t->next)
        if (t->number == number && number)
            asleep = sleeps(t, now);
    pthread_mutex_unlock(&lock);
    return asleep;
}

/* Of the processor's time in the last second, a quarter at most. */
static bool is_idle(struct known *t, double now) {
    if (now - t->counted >= 1) {
        double worked = front_worked(NULL, (uint64_t)t->self);
        t->idle = t->counted > 0 && worked - t->worked < (now - t->counted) / 4;
        t->worked = worked;
        t->counted = now;
    }
    return t->idle;
}

bool tasks_idle(int number, double now) {
    bool idle = false;
    pthread_mutex_lock(&lock);
    for (struct known *t = all; t && standin_host_blocks; t = t->next)
        if (t->number == number && number)
            idle = is_idle(t, now);
    pthread_mutex_unlock(&lock);
    return idle;
}

/* Each time that somebody looks, it is in the system's call that sleeps for a while, or
 * has hardly worked since; and it has gone to sleep anew. One long sleep is none. */
static void look_for_naps(struct known *t, double now) {
    static const double BETWEEN = 0.2; // seconds
    struct call call;
    bool idle = is_idle(t, now);
    if (now - t->napped < BETWEEN)
        return;
    unsigned long naps = switches_of(t->tid);
    bool in_one = call_of(t->tid, &call) &&
                  (call.number == SYS_clock_nanosleep || call.number == SYS_nanosleep);
    if (naps == t->naps || (t->depth && *t->depth > 0) || !(in_one || idle))
        t->napping = 0;
    else if (t->napping == 0 && in_one)
        t->napping = now;
    t->naps = naps;
    t->napped = now;
}

/* Without a nap. A thread is looked at closely only if it has not slept for a while: then
 * it is not about to wait for something that a signal would take it out of. */
static bool spins(struct known *t, double now, double seconds) {
    static const double AWAKE = 1.5; // seconds
    char text[256];
    unsigned long slept = switches_of(t->tid);
    bool runs = read_file(t->tid, "syscall", text, sizeof text) &&
                strncmp(text, "running", strlen("running")) == 0;
    if (t->busy == 0 || slept != t->slept || !runs || (t->depth && *t->depth > 0)) {
        t->busy = now;
        t->slept = slept;
        spins_not(&t->spin);
    }
    double rest = seconds > 2 * AWAKE ? seconds - AWAKE : AWAKE;
    return now - t->busy >= AWAKE && spins_look(&t->spin, t->tid, t->self, now, rest);
}

bool tasks_naps(int number, double now, double seconds) {
    bool naps = false;
    pthread_mutex_lock(&lock);
    for (struct known *t = all; t && standin_host_blocks; t = t->next)
        if (t->number == number && number) {
            look_for_naps(t, now);
            naps =
                (t->napping > 0 && now - t->napping >= seconds) || spins(t, now, seconds);
        }
    pthread_mutex_unlock(&lock);
    return naps;
}

FIND_BELOW(sigaction, int (*)(int, const struct sigaction *, struct sigaction *))

/* UCX, below MPI, has one of its own, for its debug mode (UCX_DEBUG_SIGNO). */
static bool handles(int number) {
    struct sigaction action;
    if (!below_sigaction)
        find_sigaction();
    return below_sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN &&
           !front_theirs((void *)(uintptr_t)action.sa_handler);
}

/* A function of the program's that a signal starts may wake a thread, too. */
static bool handles_signals(void) {
    static const int signals[] = {SIGHUP,  SIGINT,  SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGTERM, SIGIO};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (handles(signals[i]))
            return true;
    return false;
}

bool tasks_traced(void) {
    static const char name[] = "\nTracerPid:";
    static atomic_int traced = -1;
    char text[4096];
    if (atomic_load(&traced) < 0) {
        front_depth++; // the calls of the system are not the program's
        bool there = read_file((int)getpid(), "status", text, sizeof text);
        front_depth--;
        const char *at = there ? strstr(text, name) : NULL;
        atomic_store(&traced, at && atoi(at + sizeof name - 1) != 0);
    }
    return atomic_load(&traced) != 0;
}

bool tasks_interrupted(void) {
    for (int number = 1; number <= SIGRTMAX; number++) {
        bool fault = number == SIGSEGV || number == SIGBUS || number == SIGTRAP ||
                     number == SIGFPE || number == SIGILL || number == SIGABRT;
        if (!fault && number != SIGURG && handles(number))
            return true;
    }
    return false;
}

bool tasks_others_awake(double now) {
    if (!standin_host_blocks)
        return atomic_load(&silent) > 0;
    pthread_mutex_lock(&lock);
    bool awake = strangers(NULL) > 0 || handles_signals();
    for (struct known *t = all; t; t = t->next)
        awake |= !t->theirs && t->number == 0 && !sleeps(t, now);
    pthread_mutex_unlock(&lock);
    return awake;
}

bool tasks_others_read(void) {
    static const long calls[] = {SYS_read,    SYS_readv,   SYS_pread64, SYS_recvfrom,
                                 SYS_recvmsg, SYS_accept4, SYS_msgrcv,
#ifdef SYS_accept
                                 SYS_accept
#endif
    };
    bool reads = false;
    pthread_mutex_lock(&lock);
    for (struct known *t = all; t; t = t->next) {
        struct call call;
        if (t->theirs || t->number || !call_of(t->tid, &call))
            continue;
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            reads |= call.number == calls[i];
    }
    pthread_mutex_unlock(&lock);
    return reads;
}
