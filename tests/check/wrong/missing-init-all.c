// One process drives all devices with ncclCommInitAll and forgets the last one in its
// loop. The real NCCL waits for ever.
// rank: 1
// alone: hangs
// expect: NCCL CHECK: missing: ncclAllReduce(count 4, ncclInt32, ncclSum), operation 1
//     on communicator 1, waits for ranks that never come
// expect: rank 0 on @host: waits in ncclGroupEnd at @group for
//     ncclAllReduce(count 4, ncclInt32, ncclSum) at @allreduce, operation 1 on
//     communicator 1; rank @last of the communicator has not begun this operation
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
#ifdef FIXED
    int end = nranks;
#else
    int end = nranks - 1;
#endif
    MUST(ncclGroupStart());
    for (int device = 0; device < end; device++) {
        int *buf = bufs[device];
        ncclComm_t own = comms[device];
        // @allreduce
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, own, streams[device]));
    }
    MUST(ncclGroupEnd()); // @group
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
