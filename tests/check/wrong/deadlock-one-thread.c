// One process drives all devices with ncclCommInitAll, and makes their calls in a loop
// without a group. The real NCCL may wait in each of them for the others' ranks, and does
// in the first one, which is in a group here.
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: deadlock: one thread calls NCCL for several devices without a group
// expect: ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, for rank 1 (device 1)
// expect: the same thread before, for rank 0 (device 0): at @allreduce
// warn: 0
// off: 0
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
    for (int device = 0; device < nranks; device++)
        MUST(ncclAllReduce(bufs[device], bufs[device], 4, ncclInt32, ncclSum,
                           comms[device], streams[device]));
    MUST(ncclGroupEnd());
#ifdef FIXED
    MUST(ncclGroupStart());
#endif
    for (int device = 0; device < nranks; device++) {
        int *buf = bufs[device];
        ncclComm_t own = comms[device];
        // @allreduce
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, own, streams[device]));
    }
#ifdef FIXED
    MUST(ncclGroupEnd());
#endif
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
    if (rank == 0)
        drive_all_devices();
    MPI_Finalize();
    return 0;
}
