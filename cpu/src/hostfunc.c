/*
 * hostfunc.c has the threads that run the program's own functions, those it gave to
 * cudaLaunchHostFunc.
 *
 * They are threads of their own, as CUDA's are: a function may wait for the program, and
 * the program meanwhile for another stream. The lock is not held.
 * CUDA Runtime API, "Execution Control", cudaLaunchHostFunc.
 */
#define _GNU_SOURCE
#include "hostfunc.h"

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
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static struct function_op *waiting; // for a thread
static int free_threads;            // that none of them has been promised to
static __thread bool inside;

bool in_host_function(void) {
    return inside;
}

static void *serve(void *unused) {
    (void)unused;
    inside = true;
    for (;;) {
        pthread_mutex_lock(&door);
        while (!waiting)
            pthread_cond_wait(&bell, &door);
        struct function_op *mine = waiting;
        waiting = mine->next;
        pthread_mutex_unlock(&door);
        mine->function(mine->argument);
        pthread_mutex_lock(&door);
        free_threads++;
        pthread_mutex_unlock(&door);
        atomic_store(&mine->ended, true); // from here on it may be gone
    }
    return NULL;
}

static bool step(struct op *op) {
    struct function_op *mine = (struct function_op *)op;
    if (mine->started)
        return op->done = atomic_load(&mine->ended);
    mine->started = true;
    pthread_mutex_lock(&door);
    struct function_op **end = &waiting;
    while (*end)
        end = &(*end)->next;
    *end = mine;
    if (free_threads > 0) {
        free_threads--;
        pthread_cond_signal(&bell);
        pthread_mutex_unlock(&door);
        return true;
    }
    pthread_mutex_unlock(&door);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        fail("no thread for a host function");
    pthread_detach(thread);
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
