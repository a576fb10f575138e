// The system reads and writes pinned memory beside bytes that a copy is filling: each of
// these calls is the first to touch its half of the page since the copy began.
#include "../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>

enum { HALF = 1000 };

static int opens_pair(void *at) {
    int *ends = at;
    int error = socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (!error) {
        close(ends[0]);
        close(ends[1]);
    }
    return error;
}

static int names_memory(void *at) {
    int file = memfd_create(at, 0);
    return file < 0 ? file : close(file);
}

static int of_timer(void *at) {
    struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &nothing, &timer) || timer_gettime(timer, at) ||
           timer_delete(timer);
}

static int of_semaphores(void *at) {
    struct sembuf *up = at; // zeros: wait until the first is zero
    int set = semget(IPC_PRIVATE, 1, 0600);
    int error = set < 0 || semop(set, up, 1);
    return semctl(set, 0, IPC_RMID) || error;
}

static int in_folder(void *at) {
    return chdir(at);
}
static int changes_mode(void *at) {
    return chmod(at, 0700) && errno != ENOENT;
}
static int names_task(void *at) {
    return prctl(PR_SET_NAME, at);
}
static int tells_name(void *at) {
    return prctl(PR_GET_NAME, at);
}
static int of_system(void *at) {
    return sysinfo(at);
}
static int of_limit(void *at) {
    return getrlimit(RLIMIT_NOFILE, at);
}
static int of_both_limits(void *at) {
    return prlimit(0, RLIMIT_NOFILE, NULL, at);
}
static int of_interval(void *at) {
    return getitimer(ITIMER_REAL, at);
}
static int of_clock(void *at) { // zeros: nothing is to be changed
    return adjtimex(at) < 0 && errno != EPERM;
}
static int of_pages(void *at) {
    return mincore((void *)((size_t)&of_clock & ~4095UL), 1, at);
}
static int of_processors(void *at) {
    return sched_getaffinity(0, 128, at);
}
static int of_thread(void *at) {
    return pthread_getaffinity_np(pthread_self(), 128, at);
}
static int of_priority(void *at) {
    return sched_getparam(0, at);
}
static int of_slice(void *at) {
    return sched_rr_get_interval(0, at);
}
static int of_mask(void *at) {
    return sigprocmask(SIG_BLOCK, NULL, at);
}
static int of_thread_mask(void *at) {
    return pthread_sigmask(SIG_BLOCK, NULL, at);
}
static int of_stack(void *at) {
    return sigaltstack(NULL, at);
}
static int at_random(void *at) {
    return getrandom(at, HALF, 0) != HALF;
}
static int of_machine(void *at) {
    return uname(at);
}
static int of_file(void *at) {
    return fstat(0, at) && errno != EBADF;
}

static const struct {
    const char *name, *text;
    int (*call)(void *at); // 0: done
} calls[] = {
    {"adjtimex", NULL, of_clock},
    {"chdir", ".", in_folder},
    {"chmod", "/nowhere/half", changes_mode},
    {"fstat", NULL, of_file},
    {"getitimer", NULL, of_interval},
    {"getrandom", NULL, at_random},
    {"getrlimit", NULL, of_limit},
    {"memfd_create", "half", names_memory},
    {"mincore", NULL, of_pages},
    {"prctl, get", NULL, tells_name},
    {"prctl, set", "half", names_task},
    {"prlimit", NULL, of_both_limits},
    {"pthread_getaffinity_np", NULL, of_thread},
    {"pthread_sigmask", NULL, of_thread_mask},
    {"sched_getaffinity", NULL, of_processors},
    {"sched_getparam", NULL, of_priority},
    {"sched_rr_get_interval", NULL, of_slice},
    {"semop", NULL, of_semaphores},
    {"sigaltstack", NULL, of_stack},
    {"sigprocmask", NULL, of_mask},
    {"socketpair", NULL, opens_pair},
    {"sysinfo", NULL, of_system},
    {"timer_gettime", NULL, of_timer},
    {"uname", NULL, of_machine},
};

int main(void) {
    char *buf;
    start();
    MUST(cudaMalloc((void **)&buf, HALF));
    MUST(cudaMemsetAsync(buf, rank + 1, HALF, stream));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char *page;
        MUST(cudaMallocHost((void **)&page, 2 * HALF));
        memset(page, 0, 2 * HALF);
        strcpy(page, calls[i].text ? calls[i].text : "");
        MUST(ncclAllReduce(buf, buf, HALF, ncclInt8, ncclMax, comm, stream));
        MUST(cudaMemcpyAsync(page + HALF, buf, HALF, cudaMemcpyDeviceToHost, stream));
        int failed = calls[i].call(page);
        if (failed)
            perror(calls[i].name);
        EXPECT(failed, 0);
        MUST(cudaStreamSynchronize(stream));
        EXPECT(page[2 * HALF - 1], nranks);
        MUST(cudaFreeHost(page));
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
