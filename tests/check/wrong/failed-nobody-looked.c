// Calls fail, and the program goes on as if they had not. What comes of it is right here;
// on another day it will not be.
//
// rank: all
// alone: exit code 0
// exit: 0
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @first returned
//     cudaErrorInvalidDevice (101): invalid device ordinal
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @second returned
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @third returned
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @fourth returned
// expect: NCCL CHECK: note: rank @any: cudaSetDevice at @fifth returned
// expect: NCCL CHECK: note: rank @any: cudaEventElapsedTime at @time returned
//     cudaErrorInvalidResourceHandle (400): invalid resource handle
// expect: NCCL CHECK: note: rank @any: ncclReduce at @reduce returned
//     ncclInvalidArgument (4): ncclReduce: root @n, and the communicator has @n ranks
// expect: NCCL CHECK: note: rank 0: 9 calls returned errors, the first: cudaSetDevice at
//     @first: invalid device ordinal
#include "../check.h"

static void device(int number) {
    cudaSetDevice(number); // @second
}

int main(void) {
    start();
    int *buf = device_ints(4, rank), right;
    float ms = 0;
    cudaEvent_t before, after;
    MUST(cudaGetDevice(&right));
    MUST(cudaEventCreate(&before));
    MUST(cudaEventCreate(&after));
    int wrong = nranks + 4711;
#ifdef FIXED
    wrong = right;
#endif
    for (int i = 0; i < 2; i++)
        cudaSetDevice(wrong); // @first
    device(wrong);
    double times = 0;
    cudaSetDevice(wrong); // @third
    times += nranks * 0.5;
    cudaSetDevice(wrong); // @fourth
    EXPECT(times > 0, 1);
    if (cudaSetDevice(right) == cudaSuccess)
        cudaSetDevice(wrong); // @fifth
    MUST(cudaEventRecord(before, stream));
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaEventRecord(after, stream));
#ifdef FIXED
    MUST(cudaEventSynchronize(after));
    cudaEventElapsedTime(&ms, before, after);
#else
    cudaEvent_t never;
    MUST(cudaEventCreate(&never));
    cudaEventElapsedTime(&ms, before, never); // @time
    MUST(cudaEventDestroy(never));
    MUST(cudaStreamSynchronize(stream));
#endif
    ncclGroupStart();
    // @reduce
    ncclReduce(buf, buf, 4, ncclInt32, ncclSum, wrong == right ? 0 : nranks, comm,
               stream);
    ncclGroupEnd(); // returns the same error: nothing is said twice
    MUST(cudaStreamSynchronize(stream));
    printf("%g ms\n", (double)ms);
    MUST(cudaEventDestroy(before));
    MUST(cudaEventDestroy(after));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
