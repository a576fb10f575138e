// One process drives all devices: ncclCommInitAll, and every round of calls in a group.
// The other processes have nothing to do.
#include "../check.h"

static void drive_all_devices(void) {
    ncclComm_t comms[8];
    cudaStream_t streams[8];
    int *bufs[8];
    MUST(ncclCommInitAll(comms, nranks, NULL));
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        streams[device] = new_stream();
        bufs[device] = device_ints(4, device);
    }
    // Two groups: the calls of one run at the same time, and these share a buffer.
    MUST(ncclGroupStart());
    for (int device = nranks - 1; device >= 0; device--) {
        int *buf = bufs[device];
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comms[device],
                           streams[device]));
    }
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
    for (int device = 0; device < nranks; device++) {
        int *buf = bufs[device];
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, 1, comms[device], streams[device]));
    }
    MUST(ncclGroupEnd());
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaStreamSynchronize(streams[device]));
        EXPECT_INTS(bufs[device], 4, sum_of_ranks());
        MUST(cudaStreamDestroy(streams[device]));
        MUST(cudaFree(bufs[device]));
    }
    for (int device = 0; device < nranks; device++) {
        MUST(ncclCommDestroy(comms[device]));
    }
}

int main(void) {
    start_mpi();
    if (rank == 0) {
        drive_all_devices();
    }
    MPI_Finalize();
    return 0;
}
