// 20.3 The fifth item (repair)
// make exercise N=20.3

/*
 * "Rank 0 puts work into the four slots of rank 1, which copies it away. Up to four items
 * all is well. With the fifth, both stand still."
 *
 * Repair it. Both functions queue on `stream`; don't wait on the host.
 */
#include "lesson.h"

enum { SLOTS = 4 };

static void wait_for(int peer, ncclComm_t comm, cudaStream_t stream) {
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
    CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
}

/* Rank 0: each item is `count` floats of `items`, which are in the window, too. The slots
 * begin at byte `slots` of the window. */
void give(const float *items, size_t nitems, size_t count, size_t slots,
          ncclWindow_t window, ncclComm_t comm, cudaStream_t stream) {
    const size_t bytes = count * sizeof(float);
    for (size_t i = 0; i < nitems; i++) {
        wait_for(1, comm, stream); // a slot is free
        CHECK_NCCL(ncclPutSignal(items + i * count, count, ncclFloat32, 1, window,
                                 slots + i % SLOTS * bytes, 0, 0, 0, comm, stream));
    }
}

/* Rank 1: copies all items from the slots to `got`. */
void take(float *got, const float *slots, size_t nitems, size_t count, ncclComm_t comm,
          cudaStream_t stream) {
    const size_t bytes = count * sizeof(float);
    for (int slot = 0; slot < SLOTS; slot++) // all slots are free
        CHECK_NCCL(ncclSignal(0, 0, 0, 0, comm, stream));
    for (size_t i = 0; i < nitems; i++) {
        wait_for(0, comm, stream);
        CHECK_CUDA(cudaMemcpyAsync(got + i * count, slots + i % SLOTS * count, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    }
}
