// Four communicators at once, each with a stream of its own: all ranks twice, the even or
// odd ones, and this rank alone. All operations are in flight together.
#include "../check.h"

int main(void) {
    start();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    ncclComm_t comms[4] = {comm, new_comm(MPI_COMM_WORLD), new_comm(half),
                           new_comm(MPI_COMM_SELF)};
    cudaStream_t streams[4] = {stream, new_stream(), new_stream(), new_stream()};
    int *bufs[4];
    for (int i = 0; i < 4; i++) {
        bufs[i] = device_ints(100, 1);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            MUST(ncclAllReduce(bufs[i], bufs[i], 100, ncclInt32, ncclSum, comms[i],
                               streams[i]));
        }
    }
    int half_size;
    MPI_Comm_size(half, &half_size);
    int size[4] = {nranks, nranks, half_size, 1};
    for (int i = 3; i >= 0; i--) {
        MUST(cudaStreamSynchronize(streams[i]));
        EXPECT_INTS(bufs[i], 100, size[i] * size[i] * size[i]);
        MUST(cudaFree(bufs[i]));
    }
    for (int i = 1; i < 4; i++) {
        MUST(cudaStreamDestroy(streams[i]));
        MUST(ncclCommDestroy(comms[i]));
    }
    MPI_Comm_free(&half);
    finish();
    return 0;
}
