// One process drives all devices and joins them by ncclCommInitRank in a group, as a
// program does that later spreads over several processes.
#include "../check.h"

static void drive_all_devices(void) {
    ncclComm_t comms[8];
    cudaStream_t streams[8];
    int *bufs[8];
    ncclUniqueId id;
    MUST(ncclGetUniqueId(&id));
    MUST(ncclGroupStart());
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        MUST(ncclCommInitRank(&comms[device], nranks, id, device));
    }
    MUST(ncclGroupEnd());
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        streams[device] = new_stream();
        bufs[device] = device_ints(4, device);
    }
    MUST(ncclGroupStart());
    for (int device = 0; device < nranks; device++) {
        int next = (device + 1) % nranks;
        int before = (device + nranks - 1) % nranks;
        int *buf = bufs[device];
        MUST(ncclSend(buf, 2, ncclInt32, next, comms[device], streams[device]));
        MUST(ncclRecv(buf + 2, 2, ncclInt32, before, comms[device], streams[device]));
    }
    MUST(ncclGroupEnd());
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaStreamSynchronize(streams[device]));
        EXPECT_INTS(bufs[device], 2, device);
        EXPECT_INTS(bufs[device] + 2, 2, (device + nranks - 1) % nranks);
        MUST(cudaFree(bufs[device]));
        MUST(cudaStreamDestroy(streams[device]));
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
