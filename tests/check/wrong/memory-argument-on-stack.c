// A helper queues a function on the stream, with one of its own variables, and returns.
// When the function runs, something else lies there.
//
// expect: NCCL CHECK: memory: the argument of a function on a stream is a variable of a
//     function that has returned
// expect: rank @any on @host: cudaLaunchHostFunc at @queue
// expect: then comes cudaStreamSynchronize at @wait, and the function on the stream
#include "../check.h"

struct note {
    int step, *seen;
};
static int seen;

static void count(void *argument) {
    const struct note *note = argument;
    *note->seen += note->step;
}

static __attribute__((noinline)) void queue(int step, struct note *lasting) {
    struct note local, *note = &local;
#ifdef FIXED
    note = lasting;
#else
    (void)lasting;
#endif
    *note = (struct note){step, &seen};
    MUST(cudaLaunchHostFunc(stream, count, note)); // @queue
}

/* It has begun before its argument is gone, and needs it no more: right. */
static __attribute__((noinline)) void queue_and_wait(int step) {
    const int before = seen;
    struct note local = {step, &seen};
    MUST(cudaLaunchHostFunc(stream, count, &local));
    while (__atomic_load_n(&seen, __ATOMIC_SEQ_CST) == before)
        usleep(1000);
}

int main(void) {
    start();
    struct note lasting;
    queue_and_wait(1);
    queue(2, &lasting);
    MUST(cudaStreamSynchronize(stream)); // @wait
    EXPECT(seen, 3);
    finish();
    return 0;
}
