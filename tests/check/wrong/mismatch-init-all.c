// One process drives all devices with ncclCommInitAll and gives its second device another
// root. The real NCCL hangs, or ends with wrong data.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different roots at operation 1 on
//     communicator 1
// expect: ncclBroadcast(count 4, ncclInt32, root 0) at @broadcast
// expect: rank 1 ...ncclBroadcast(count 4, ncclInt32, root 1) at @broadcast
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
    MUST(ncclGroupStart());
    for (int device = 0; device < nranks; device++) {
        int *buf = bufs[device];
        ncclComm_t own = comms[device];
#ifdef FIXED
        int root = 0;
#else
        int root = device == 1 ? 1 : 0;
#endif
        // @broadcast
        MUST(ncclBroadcast(buf, buf, 4, ncclInt32, root, own, streams[device]));
    }
    MUST(ncclGroupEnd());
    for (int device = 0; device < nranks; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaStreamSynchronize(streams[device]));
        MUST(cudaStreamDestroy(streams[device]));
        MUST(cudaFree(bufs[device]));
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
