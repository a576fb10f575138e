// What else a process does that is its own affair: threads with the smallest stack that
// there is, all its memory locked, null pointers that its own handler catches, as the
// languages do that promise to name them, and a count of the children that it has had.
#include "../check.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf back;
static volatile sig_atomic_t nulls, children;

static void on_null(int number) {
    (void)number;
    nulls++;
    siglongjmp(back, 1);
}

static void on_child(int number) {
    (void)number;
    children++;
}

static void *tick(void *counter) {
    __atomic_add_fetch((int *)counter, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void) {
    start();
    int ticks = 0, *volatile null = NULL;
    pthread_attr_t small;
    pthread_t threads[4];
    pthread_attr_init(&small);
    EXPECT(pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN), 0);
    int error = 0;
    for (int i = 0; i < 4 && !error; i++) {
        error = pthread_create(&threads[i], &small, tick, &ticks);
        if (!error)
            pthread_join(threads[i], NULL);
    }
#ifdef CUDA_RUNTIME_H_CPU
    EXPECT(error, 0);
    EXPECT(ticks, 4);
#else
    EXPECT(error == 0 || error == EINVAL,
           1); // CUDA's own libraries may need a larger one
#endif
    // Not everybody may; who may gets it within the time of this test.
    if (mlockall(MCL_CURRENT) == 0)
        use_comm(comm);
    munlockall();
    signal(SIGCHLD, on_child);
    struct sigaction null_handler = {.sa_handler = on_null, .sa_flags = SA_NODEFER},
                     before;
    sigaction(SIGSEGV, &null_handler, &before);
    for (int i = 0; i < 5; i++)
        if (sigsetjmp(back, 1) == 0)
            ticks = *null;
    sigaction(SIGSEGV, &before, NULL);
    EXPECT(nulls, 5);
    EXPECT(children, 0);
    use_comm(comm);
    finish();
    return 0;
}
