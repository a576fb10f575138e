// The check macro has a variable r of its own, and so has the loop: what is sent goes to
// the rank of that number, whatever the macro's variable holds (NVIDIA/nccl issue 566).
// rank: all
// alone: exit code 1
// expect: NCCL CHECK: note: rank @any: ncclSend at @send returned ncclInvalidArgument
//     (4): ...peer
#include "../check.h"

#ifdef FIXED
#define CHECKED(call)                      \
    do {                                   \
        ncclResult_t checked_one = (call); \
        if (checked_one != ncclSuccess)    \
            exit(1);                       \
    } while (0)
#else
#define CHECKED(call)          \
    do {                       \
        ncclResult_t r = 4711; \
        r = (call);            \
        if (r != ncclSuccess)  \
            exit(1);           \
    } while (0)
#endif

int main(void) {
    start();
    int *out = device_ints(4 * nranks, rank), *in = device_ints(4 * nranks, -1);
    MUST(ncclGroupStart());
    for (int r = 0; r < nranks; r++) {
        CHECKED(ncclSend(out + 4 * r, 4, ncclInt32, r, comm, stream)); // @send
        CHECKED(ncclRecv(in + 4 * r, 4, ncclInt32, r, comm, stream));
    }
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
