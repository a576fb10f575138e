/*
 * hostfunc.c has the threads that run the program's own functions, those it gave to
 * cudaLaunchHostFunc.
 *
 * Each device has a thread for them, so that a function may wait for the program, and the
 * program meanwhile for another stream. The functions of a device run one after another,
 * whatever their streams: they "may be serialized" (CUDA Runtime API, "Execution
 * Control", cudaLaunchHostFunc), and are so on an H100. The lock is not held.
 */
#define _GNU_SOURCE
#include "cuda/device.h"
#include "cuda/hostfunc.h"

#include <pthread.h>
#include <stdatomic.h>

struct function_op {
    struct op op;
    cudaHostFn_t function;
    void *argument;
    bool started;
    atomic_bool ended;
    struct function_op *next;
};

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static struct runner { // of a device
    pthread_cond_t bell;
    struct function_op *waiting;
    bool started;
} runners[MAX_DEVICES];
static __thread bool inside;

bool in_host_function(void) {
    return inside;
}

static void *serve(void *self) {
    struct runner *runner = self;
    inside = true;
    for (;;) {
        pthread_mutex_lock(&door);
        while (!runner->waiting)
            pthread_cond_wait(&runner->bell, &door);
        struct function_op *mine = runner->waiting;
        runner->waiting = mine->next;
        pthread_mutex_unlock(&door);
        mine->function(mine->argument);
        atomic_store(&mine->ended, true); // from here on it may be gone
    }
    return NULL;
}

static void start(struct runner *runner) {
    pthread_t thread;
    runner->started = true;
    pthread_cond_init(&runner->bell, NULL);
    if (pthread_create(&thread, NULL, serve, runner) != 0)
        fail("no thread for host functions");
    pthread_setname_np(thread, "nccl-cpu"); // not the program's own
    pthread_detach(thread);
}

static bool step(struct op *op) {
    struct function_op *mine = (struct function_op *)op;
    if (mine->started)
        return op->done = atomic_load(&mine->ended);
    mine->started = true;
    struct runner *runner = &runners[op->stream->device];
    if (!runner->started)
        start(runner);
    pthread_mutex_lock(&door);
    struct function_op **end = &runner->waiting;
    while (*end)
        end = &(*end)->next;
    *end = mine;
    pthread_cond_signal(&runner->bell);
    pthread_mutex_unlock(&door);
    return true;
}

static struct op *copy(const struct op *op) {
    const struct function_op *from = (const struct function_op *)op;
    return hostfunc_op(from->function, from->argument);
}

struct op *hostfunc_op(cudaHostFn_t function, void *argument) {
    struct op *op = op_create(sizeof(struct function_op), step);
    struct function_op *mine = (struct function_op *)op;
    op->copy = copy;
    mine->function = function;
    mine->argument = argument;
    return op;
}
