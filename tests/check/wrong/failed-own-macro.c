// The program's own macro prints what CUDA says of an error, without a line, and leaves
// at once, as abort() would: no end of the program, in which more could be said.
//
// rank: all
// alone: exit code 9
// exit: 9
// expect: NCCL CHECK: note: rank @any: cudaFree at @free returned
//     cudaErrorInvalidValue (1): invalid argument
#include "../check.h"

#define OWN(call)                                                     \
    do {                                                              \
        cudaError_t error = (call);                                   \
        if (error != cudaSuccess) {                                   \
            fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error)); \
            _exit(9);                                                 \
        }                                                             \
    } while (0)

int main(void) {
    start();
    int *buf = device_ints(4, rank);
#ifdef FIXED
    OWN(cudaFree(buf));
#else
    OWN(cudaFree(buf + 1)); // @free
#endif
    finish();
    return 0;
}
