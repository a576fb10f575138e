//: kind repair
//: title The fifth item
//: trains a signal back: the slot is free
//: build cpu
//: ranks 2 3 | 4 7 8
//: starter NCCL CHECK: missing: every rank waits
//: learned A signal says that data has come, not that it was read. The reader has to signal, too, before a place can be used again.
//: why The reader signals after the copy of each item, so the writer's wait for a free slot ends.
//: hint The report says for which signals rank 0 waits. Who should send them?
//: hint Rank 0 waits until a slot is free. At first there are four signals for that. Who says later that a slot is free again?
//: hint In `take`, after the copy: ncclSignal(0, 0, 0, 0, comm, stream).
//: file

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
        //: starter
        //: solution
        CHECK_NCCL(ncclSignal(0, 0, 0, 0, comm, stream));
        //: wrong to-itself: NCCL CHECK:
        CHECK_NCCL(ncclSignal(1, 0, 0, 0, comm, stream));
        //: wrong when-all-are-full: NCCL CHECK: missing: every rank waits
        if (i % SLOTS == SLOTS - 1)
            CHECK_NCCL(ncclSignal(0, 0, 0, 0, comm, stream));
        //: wrong at-the-end: NCCL CHECK: missing: every rank waits
        if (i == nitems - 1)
            CHECK_NCCL(ncclSignal(0, 0, 0, 0, comm, stream));
        //: wrong synchronized: NCCL CHECK: missing: every rank waits
        CHECK_CUDA(cudaStreamSynchronize(stream));
        //: end
    }
}
//: check
void give(const float *items, size_t nitems, size_t count, size_t slots,
          ncclWindow_t window, ncclComm_t comm, cudaStream_t stream);
void take(float *got, const float *slots, size_t nitems, size_t count, ncclComm_t comm,
          cudaStream_t stream);

enum { SLOTS_HERE = 4, MOST_ITEMS = 11, MOST = 500 };

void check(void) {
    const size_t bytes = (MOST_ITEMS + SLOTS_HERE) * MOST * sizeof(float);
    float *memory;
    CHECK_NCCL(ncclMemAlloc((void **)&memory, bytes));
    const size_t nitems[] = {3, 5, MOST_ITEMS}, counts[] = {7, 1, MOST};
    for (int c = 0; c < 3; c++) {
        const size_t n = nitems[c], count = counts[c];
        check_case("%zu items of %zu floats", n, count);
        // Signals that nobody has waited for end with the communicator.
        ncclComm_t comm;
        ncclWindow_t window;
        CHECK_NCCL(ncclCommSplit(check_comm, 0, check_rank, &comm, NULL));
        CHECK_NCCL(ncclCommWindowRegister(comm, memory, bytes, &window,
                                          NCCL_WIN_COLL_SYMMETRIC));
        float *items = check_host(n * count * sizeof(float));
        float *got = check_device(n * count * sizeof(float));
        for (size_t i = 0; i < n * count; i++)
            items[i] = (float)check_data(0, i);
        if (check_rank == 0)
            check_put(memory, items, n * count * sizeof(float));
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (check_rank == 0)
            give(memory, n, count, n * count * sizeof(float), window, comm, check_stream);
        else if (check_rank == 1)
            take(got, memory + n * count, n, count, comm, check_stream);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
        if (check_rank == 1)
            check_buffer("got", got, items, n * count, ncclFloat32);
        CHECK_NCCL(ncclCommWindowDeregister(comm, window));
        CHECK_NCCL(ncclCommDestroy(comm));
    }
    CHECK_NCCL(ncclMemFree(memory));
}
