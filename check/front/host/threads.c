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
    TELL(judge_waits_thread, (uint64_t)thread);
    int error = CALL(below, thread, result);
    TELL(judge_waits_thread, 0);
    return error;
}
