// A function on one stream waits for a function on another. "Host functions without a
// mandated order … execute in undefined order and may be serialized" (CUDA Runtime API,
// cudaLaunchHostFunc): an H100 runs them one after another, and the first one waits for
// ever.
//
// expect: NCCL CHECK: deadlock: a function on a stream waits for the host
//
// expect: waits in cudaStreamSynchronize at @sync for a function of cudaLaunchHostFunc at
//     @use, which sleeps until another thread wakes it
//
// expect: Nor for another such function
#include "../check.h"

#include <semaphore.h>

static sem_t filled;

static void CUDART_CB fill(void *unused) {
    (void)unused;
    sem_post(&filled);
}

static void CUDART_CB use(void *unused) {
    (void)unused;
    sem_wait(&filled);
}

int main(void) {
    start();
    cudaStream_t other;
    sem_init(&filled, 0, 0);
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
#ifdef FIXED
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    MUST(cudaLaunchHostFunc(other, fill, NULL));
    MUST(cudaEventRecord(done, other));
    MUST(cudaStreamWaitEvent(stream, done, 0));
    MUST(cudaLaunchHostFunc(stream, use, NULL));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaEventDestroy(done));
#else
    MUST(cudaLaunchHostFunc(stream, use, NULL)); // @use
    MUST(cudaLaunchHostFunc(other, fill, NULL));
    MUST(cudaStreamSynchronize(stream)); // @sync
#endif
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
