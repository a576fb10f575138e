// Rank 1 receives as much as rank 0 sends, into a buffer that is too small. The real NCCL
// writes over whatever comes after it.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: memory: ncclRecv(count 4, ncclInt32, from rank 0) runs past the end
//     of its buffer
// expect: rank 1 on @host: ncclRecv(count 4, ncclInt32, from rank 0) at @recv, 16 bytes
//     from byte 0 of a buffer of 8 bytes
// expect: the buffer: device memory made at @malloc
#include "../check.h"

int main(void) {
    start();
    int *out = device_ints(4, rank);
    int *in;
#ifdef FIXED
    int room = 4;
#else
    int room = 2;
#endif
    MUST(cudaMalloc((void **)&in, room * sizeof(int))); // @malloc
    if (rank == 0) {
        MUST(ncclSend(out, 4, ncclInt32, 1, comm, stream));
    } else if (rank == 1) {
        MUST(ncclRecv(in, 4, ncclInt32, 0, comm, stream)); // @recv
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    finish();
    return 0;
}
