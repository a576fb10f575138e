/*
 * enter.c: the way into the front and out again: whose call it is, the judge of this
 * process, the numbers of its threads, and the functions that lie below.
 */
#define _GNU_SOURCE
#include "enter.h"
#include "strangers.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

__thread int front_depth;
__thread bool front_in_signal;
bool front_on, front_checks, front_saw_cuda, front_timed;
char front_host[JUDGE_HOST];

static struct judge *judge;
struct judge_options front_options = {.mode = JUDGE_ON, .timeout = 5};

void (*front_at_out)(struct judge *j);

static int in_library(struct dl_phdr_info *info, size_t size, void *data) {
    const char **name = data;
    (void)size;
    void *file =
        info->dlpi_name[0] ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = file ? dlsym(file, *name) : NULL;
    Dl_info mine, theirs;
    if (file)
        dlclose(file);
    if (!found || !dladdr(found, &theirs) ||
        !dladdr((void *)(uintptr_t)front_find, &mine) ||
        mine.dli_fbase == theirs.dli_fbase)
        return 0;
    *name = found;
    return 1;
}

void *front_find(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    const char *what = name;
    // Python loads its libraries where RTLD_NEXT does not look.
    if (!found && dl_iterate_phdr(in_library, &what))
        found = (void *)(uintptr_t)what;
    // An NCCL that was built without its profiling interface: what it calls itself passes
    // through here then, and is known by front_depth.
    if (!found && strncmp(name, "pnccl", 5) == 0)
        found = front_find(name + 1);
    return found;
}

static atomic_int last_thread;
__thread int front_this_thread;
static pthread_key_t at_thread_end;

static __thread bool inside; // this thread has the judge's lock

struct judge *front_in_as(int thread) {
    judge_enter(judge, thread);
    inside = true;
    return judge;
}

void front_leave(void) {
    inside = false;
    judge_leave(judge);
}

/* Outside of front_in. */
static void gone(int thread) {
    if (!judge || !front_on)
        return;
    judge_thread_gone(front_in_as(0), thread);
    front_leave();
}

static void thread_ends(void *number) {
    strangers_forget_this();
    gone((int)(intptr_t)number);
}

double front_worked(void *self, uint64_t name) {
    clockid_t clock;
    struct timespec t;
    (void)self;
    if (name == 0 || pthread_getcpuclockid((pthread_t)name, &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return -1;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int front_thread(void) {
    if (front_this_thread == 0) {
        front_this_thread = atomic_fetch_add(&last_thread, 1) + 1;
        strangers_not_this();
        pthread_setspecific(at_thread_end, (void *)(intptr_t)front_this_thread);
        judge_thread_name(front_in_as(front_this_thread), (uint64_t)pthread_self());
        front_leave();
    }
    return front_this_thread;
}

struct judge *front_in(void) {
    return front_in_as(front_thread());
}

void front_out(void) {
    if (front_at_out)
        front_at_out(judge);
    front_leave();
}

bool front_is_inside(void) {
    return inside;
}

struct front_own front_function_begins(void) {
    struct front_own before = {front_depth, front_this_thread};
    front_depth = 0;
    front_this_thread = atomic_fetch_add(&last_thread, 1) + 1;
    return before;
}

void front_function_ends(struct front_own before) {
    gone(front_this_thread);
    front_depth = before.depth;
    front_this_thread = before.thread;
}

static struct judge_outside of_judge;

static void begin(void) {
    judge = judge_new(&of_judge, &front_options);
    judge_world(judge, 0, 1, front_host);
}

void front_begins(const struct judge_outside *outside) {
    of_judge = *outside;
    pthread_key_create(&at_thread_end, thread_ends);
    begin();
}

void front_begins_anew(void) {
    front_this_thread = 0;
    begin();
}

void front_obeys(void) {
    judge_set(judge, &front_options);
}
