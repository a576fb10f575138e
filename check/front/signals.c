/*
 * signals.c: the signals of a fault, which the checks and the program may both want.
 *
 * guard.c's handlers stay where they are. What the program installs for the same signals
 * is kept here, and called for a fault that is none of the checks' business, as the
 * kernel would have called it.
 */
#define _GNU_SOURCE
#include "signals.h"

#include "../base.h"
#include "front.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#define PUBLIC __attribute__((visibility("default"), weak))

FIND_BELOW(sigaction, int (*)(int, const struct sigaction *, struct sigaction *))
FIND_BELOW(pthread_sigmask, int (*)(int, const sigset_t *, sigset_t *))
FIND_BELOW(sigprocmask, int (*)(int, const sigset_t *, sigset_t *))

/* A handler may be looked up by one thread while another sets it: what it looks at is
 * overwritten only when seven more have been set. */
enum { KEPT = 8 };
static struct taken {
    int number;
    void (*handler)(int, siginfo_t *, void *); // ours
    struct sigaction kept[KEPT];
    atomic_uint last; // the program's is kept[last % KEPT]
} taken[3];           // guarded by `lock`
static atomic_int ntaken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct taken *find_taken(int number) {
    for (int i = 0; i < atomic_load(&ntaken); i++)
        if (taken[i].number == number)
            return &taken[i];
    return NULL;
}

static const struct sigaction *kept(const struct taken *t) {
    return &t->kept[atomic_load(&t->last) % KEPT];
}

static void keep(struct taken *t, const struct sigaction *action) {
    unsigned next = atomic_load(&t->last) + 1;
    t->kept[next % KEPT] = *action;
    atomic_store(&t->last, next);
}

/* Ours, on the stack that the program has asked for: it may have no other left. */
static void install(const struct taken *t) {
    struct sigaction ours = {.sa_sigaction = t->handler,
                             .sa_flags = SA_SIGINFO | SA_NODEFER |
                                         (kept(t)->sa_flags & SA_ONSTACK)};
    below_sigaction(t->number, &ours, NULL);
}

void signals_take(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction now;
    pthread_mutex_lock(&lock);
    struct taken *t = find_taken(number);
    below_sigaction(number, NULL, &now);
    if (!t) {
        t = &taken[atomic_load(&ntaken)];
        t->number = number;
        t->handler = handler;
        atomic_fetch_add(&ntaken, 1);
    }
    if (now.sa_sigaction != handler) {
        keep(t, &now);
        install(t);
    }
    pthread_mutex_unlock(&lock);
}

/* Signals that must come through while pages are closed. Who blocks all signals means
 * others: blocked, the first of these ends the process. */
static sigset_t fewer(const sigset_t *set) {
    sigset_t rest = *set;
    for (int i = 0; i < atomic_load(&ntaken); i++)
        sigdelset(&rest, taken[i].number);
    return rest;
}

/* As it would be without us. A fault comes again where the instruction is done again; a
 * signal that was sent does not. */
static void default_ends(int number, bool sent) {
    const struct sigaction none = {.sa_handler = SIG_DFL};
    below_sigaction(number, &none, NULL);
    if (sent)
        raise(number);
}

void signals_pass_on(int number, siginfo_t *info, void *context) {
    struct taken *t = find_taken(number);
    if (!t)
        return;
    const struct sigaction action = *kept(t);
    bool sent = info->si_code <= 0; // by a process
    if (action.sa_handler == SIG_IGN && sent)
        return;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
        default_ends(number, sent);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND) {
        pthread_mutex_lock(&lock);
        keep(t, &(struct sigaction){.sa_handler = SIG_DFL});
        pthread_mutex_unlock(&lock);
    }
    sigset_t blocked = fewer(&action.sa_mask);
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&blocked, number);
    below_pthread_sigmask(SIG_BLOCK, &blocked, NULL); // until we return
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

/* --- The program's calls ---------------------------------------------------------- */

static int set(struct taken *t, const struct sigaction *action, struct sigaction *old) {
    sigset_t all, before;
    sigfillset(&all);
    below_pthread_sigmask(SIG_SETMASK, &all, &before); // a handler may call this, too
    pthread_mutex_lock(&lock);
    const struct sigaction was = *kept(t);
    if (action) {
        keep(t, action);
        install(t);
    }
    if (old)
        *old = was;
    pthread_mutex_unlock(&lock);
    below_pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}

/* Libraries below do not set a handler where there is one, so they are told the truth. */
static struct taken *find_for(void *return_address, int number) {
    struct taken *t = find_taken(number);
    return t && !front_theirs(return_address) ? t : NULL;
}

PUBLIC int sigaction(int number, const struct sigaction *restrict action,
                     struct sigaction *restrict old) {
    if (!below_sigaction)
        find_sigaction();
    struct taken *t = find_for(__builtin_return_address(0), number);
    if (t)
        return set(t, action, old);
    channels_handler(number, action ? action->sa_handler : SIG_DFL,
                     __builtin_return_address(0));
    struct sigaction rest;
    if (action && standin_host_blocks) {
        rest = *action;
        rest.sa_mask = fewer(&action->sa_mask);
        action = &rest;
    }
    return below_sigaction(number, action, old);
}

/* BSD's signal, and System V's, which a strict standard of C gets. */
#define SIGNAL(name, flags)                                                          \
    FIND_BELOW(name, sighandler_t (*)(int, sighandler_t))                            \
    PUBLIC sighandler_t name(int number, sighandler_t handler);                      \
    sighandler_t name(int number, sighandler_t handler) {                            \
        struct sigaction action = {.sa_handler = handler, .sa_flags = (int)(flags)}; \
        if (!below_##name)                                                           \
            find_##name();                                                           \
        struct taken *t = find_for(__builtin_return_address(0), number);             \
        if (t && handler != SIG_ERR) {                                               \
            set(t, &action, &action);                                                \
            return action.sa_handler;                                                \
        }                                                                            \
        channels_handler(number, handler, __builtin_return_address(0));              \
        return below_##name(number, handler);                                        \
    }
SIGNAL(signal, SA_RESTART)
SIGNAL(__sysv_signal, SA_RESETHAND | SA_NODEFER)

/* Both sets are copied here: they may lie beside what is in use, where the system would
 * fail and a load or a store does not. */
#define MASKS(name)                                                                \
    PUBLIC int name(int how, const sigset_t *set, sigset_t *old) {                 \
        sigset_t given, before;                                                    \
        if (!below_##name)                                                         \
            find_##name();                                                         \
        if (set)                                                                   \
            given = how != SIG_UNBLOCK && standin_host_blocks ? fewer(set) : *set; \
        sigemptyset(&before);                                                      \
        int error = below_##name(how, set ? &given : NULL, &before);               \
        if (old && !error)                                                         \
            *old = before;                                                         \
        return error;                                                              \
    }
MASKS(pthread_sigmask)
MASKS(sigprocmask)
