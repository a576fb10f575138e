/*
 * spins.c: threads that look at the same thing again and again, without a pause.
 *
 * A loop like `while (!flag);` leaves no trace in the system: the thread runs, as one
 * does that computes. But what computes changes something. So the thread is stopped now
 * and then, for a moment, by a signal that nobody else uses. If its registers and the
 * newest part of its stack take the same few values again and again, then it does not
 * count, add or move on, and its loop ends only when somebody else changes what it looks
 * at. Only loops of the program itself are taken for that, with sched_yield in them or
 * without: a call of the system may bring something each time.
 */
#define _GNU_SOURCE
#include "spins.h"
#include "../base.h"
#include "front.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* Its default is to be ignored, and Go's runtime uses it for the same. */
enum { SIGNAL = SIGURG };

static __thread struct spin *own;

void spins_thread(struct spin *spin) {
    own = spin;
}

#if defined(__x86_64__)
static const uint64_t *registers(const ucontext_t *context, int *n) {
    *n = REG_RIP + 1; // what follows is the same for all
    return (const uint64_t *)(const void *)context->uc_mcontext.gregs;
}
static uintptr_t counter_of(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}
static uintptr_t stack_of(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}
#elif defined(__aarch64__)
static const uint64_t *registers(const ucontext_t *context, int *n) {
    *n = 33; // 31, the stack's, the counter
    return (const uint64_t *)(const void *)context->uc_mcontext.regs;
}
static uintptr_t counter_of(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.pc;
}
static uintptr_t stack_of(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.sp;
}
#else
static const uint64_t *registers(const ucontext_t *context, int *n) {
    (void)context;
    *n = 0; // no thread is known to spin
    return NULL;
}
static uintptr_t counter_of(const ucontext_t *context) {
    (void)context;
    return 0;
}
static uintptr_t stack_of(const ucontext_t *context) {
    (void)context;
    return 0;
}
#endif

/* In the thread. Its variables lie in the newest kilobyte of the stack, and below, where
 * a function that calls no other may keep some. */
__attribute__((no_sanitize("address"))) static void on_signal(int number, siginfo_t *info,
                                                              void *data) {
    enum { BELOW_IT = 128, ABOVE = 1024 };
    const ucontext_t *context = data;
    struct spin *spin = own;
    (void)number, (void)info;
    if (!spin)
        return;
    int n;
    const uint64_t *values = registers(context, &n);
    uint64_t state = 1;
    for (int i = 0; i < n; i++)
        state = mixed(state, values[i]);
    uintptr_t from = (stack_of(context) - BELOW_IT) & ~(uintptr_t)7,
              to = from + BELOW_IT + ABOVE;
    for (to = to < spin->stack_end ? to : spin->stack_end; from + 8 <= to; from += 8)
        state = mixed(state, *(const volatile uint64_t *)from);
    spin->state = state;
    spin->counter = counter_of(context);
    atomic_fetch_add(&spin->samples, 1);
}

FIND_BELOW(sigaction, int (*)(int, const struct sigaction *, struct sigaction *))

/* False: the program has a use of its own for the signal. */
static bool ready(void) {
    struct sigaction there;
    if (!below_sigaction)
        find_sigaction();
    if (below_sigaction(SIGNAL, NULL, &there) != 0)
        return false;
    if ((there.sa_flags & SA_SIGINFO) && there.sa_sigaction == on_signal)
        return true;
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
                             .sa_sigaction = on_signal};
    sigemptyset(&ours.sa_mask);
    return !(there.sa_flags & SA_SIGINFO) && there.sa_handler == SIG_DFL &&
           below_sigaction(SIGNAL, &ours, NULL) == 0;
}

static bool find_stack(struct spin *spin, pthread_t thread) {
    uintptr_t from;
    return spin->stack_end != 0 || front_stack(thread, &from, &spin->stack_end);
}

FIND_BELOW(sched_yield, int (*)(void))

static bool in_its_own_loop(uintptr_t counter) {
    enum { YIELD = 48 }; // bytes of the function
    if (!below_sched_yield)
        find_sched_yield();
    uintptr_t yield = (uintptr_t)below_sched_yield;
    return (counter >= yield && counter < yield + YIELD) ||
           front_site_in_program(front_site((char *)counter + 1));
}

void spins_not(struct spin *spin) {
    spin->nstates = 0;
    spin->same = 0;
    spin->since = 0;
    spin->asked = spin->looked = atomic_load(&spin->samples);
}

static void take(struct spin *spin, double now) {
    uint64_t state = spin->state;
    int i = 0;
    if (!in_its_own_loop(spin->counter)) {
        spins_not(spin);
        return;
    }
    if (spin->since == 0)
        spin->since = now;
    while (i < spin->nstates && spin->states[i] != state)
        i++;
    if (i < spin->nstates) {
        spin->same++;
    } else if (i < SPIN_STATES) {
        spin->states[spin->nstates++] = state;
        spin->same = 0;
    } else {
        spins_not(spin);
    }
}

/* Until the thread has had the processor; not for long. */
static bool sampled(struct spin *spin) {
    enum { TRIES = 30 };
    for (int i = 0; i < TRIES && atomic_load(&spin->samples) == spin->looked; i++)
        nanosleep(&(struct timespec){0, 100000}, NULL);
    return atomic_load(&spin->samples) != spin->looked;
}

bool spins_look(struct spin *spin, int tid, pthread_t thread, double now,
                double seconds) {
    enum { AT_A_TIME = 6, ENOUGH = 30 }; // samples; ENOUGH in a row without anything new
    if (!find_stack(spin, thread) || !ready())
        return false;
    for (int i = 0; i < AT_A_TIME; i++) {
        // One at a time: a thread that gets no processor is not looked at.
        if (spin->asked == spin->looked) {
            spin->asked++;
            syscall(SYS_tgkill, getpid(), tid, SIGNAL);
        }
        if (!sampled(spin))
            break;
        spin->looked = atomic_load(&spin->samples);
        take(spin, now);
    }
    return spin->since > 0 && now - spin->since >= seconds && spin->same >= ENOUGH;
}
