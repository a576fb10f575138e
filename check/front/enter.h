/*
 * enter.h: the way into the front and out again: whose call it is, the judge of this
 * process, the numbers of its threads.
 *
 * The front has the public functions of CUDA, cuBLAS, NCCL and MPI. Each tells the judge
 * what the program does, and calls the function of the same name below.
 */
#ifndef ENTER_H
#define ENTER_H

#include "below.h"
#include "place.h"
#include "python.h"

/* How deep this thread is in the front, or below it: libraries call each other's public
 * functions, and what they do there is not the program's doing. */
extern __thread int front_depth;
extern bool front_on; // somebody wants to hear of the calls: the checks, or a timeline
extern bool front_checks;   // they are not switched off, and nothing made them give up
extern bool front_saw_cuda; // a call of the program
extern bool front_timed;    // it looks at a clock: what it does may be there to be timed

static inline bool front_passes(void) {
    return front_depth > 0 || !front_on;
}

/* The first lines of a public function: passes on what is not the program's own call, and
 * notes where the call stands. */
#define NOT_THE_PROGRAM \
    (front_passes() || front_caller(__builtin_return_address(0)).theirs)
#define FRONT_PASS(name, ...)                                                     \
    if (front_passes())                                                           \
        return BELOW(name)(__VA_ARGS__);                                          \
    const struct front_caller caller = front_caller(__builtin_return_address(0)); \
    if (caller.theirs || python_watchdog())                                       \
        return BELOW(name)(__VA_ARGS__);                                          \
    front_saw_cuda = true
#define AT_HERE \
    const struct judge_at at = {__func__, front_site(__builtin_return_address(0))}

/* Calls what lies below, so that what it calls itself passes through:
 * CALL(BELOW(cudaMalloc), p, n) */
#define CALL(function, ...)                                                        \
    ({                                                                             \
        front_depth++;                                                             \
        __typeof__((function)(__VA_ARGS__)) call_result = (function)(__VA_ARGS__); \
        front_depth--;                                                             \
        call_result;                                                               \
    })

/* Between the two lie the events that are told to the judge. Nothing below is called
 * there. */
struct judge *front_in(void);
struct judge *front_in_as(int thread); // 0: the helper
int front_thread(void);                // this one's number
extern __thread int front_this_thread; // the same; 0: it has none yet
void front_out(void);
void front_leave(void); // the same, and leaves pages as they are
/* Tells it one event: TELL(judge_wait_stream, stream, at) */
#define TELL(event, ...)                 \
    ({                                   \
        struct judge *told = front_in(); \
        event(told, ##__VA_ARGS__);      \
        front_out();                     \
    })
bool front_is_inside(void);           // this thread
extern __thread bool front_in_signal; // MPI may be what was interrupted
/* Called if it is set by the next front_out, before it leaves (pages.c). */
extern void (*front_at_out)(struct judge *j);

/* Seconds of a processor that a thread has had, which is there; negative: not known.
 * `name`: its pthread_self(), or 0. */
double front_worked(void *self, uint64_t name);

/* The program's own function is called from below (a host function, a callback): what it
 * calls is the program's again, and it is a thread of its own to the judge. */
struct front_own {
    int depth, thread;
};
struct front_own front_function_begins(void);
void front_function_ends(struct front_own before);

/* The judge of this process. It begins with the settings, and obeys them when they have
 * changed. */
extern struct judge_options front_options;
extern char front_host[JUDGE_HOST]; // the machine's name
void front_begins(const struct judge_outside *outside);
void front_begins_anew(void); // in a process that was forked off
void front_obeys(void);

#endif
