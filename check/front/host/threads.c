/*
 * threads.c: a thread that waits until another one has ended.
 */
#define _GNU_SOURCE
#include "enter.h"

#include <pthread.h>

__attribute__((visibility("default"))) int pthread_join(pthread_t thread, void **result) {
    static int (*below)(pthread_t, void **);
    if (!below)
        below = (int (*)(pthread_t, void **))front_find("pthread_join");
    if (NOT_THE_PROGRAM)
        return below(thread, result);
    judge_waits_thread(front_in(), (uint64_t)thread);
    front_out();
    int error = CALL(below, thread, result);
    judge_waits_thread(front_in(), 0);
    front_out();
    return error;
}
