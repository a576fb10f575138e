// Windows that are read while other ranks put. A halo over many steps: each rank reads
// what its neighbours have put after it has waited for their signals, and has two places
// for it. Then a queue with credits from rank 0 to rank 1. In between, a barrier, a
// message or a collective is what puts a read before a put.
#include "../check.h"

enum { STEPS = 20, SLOTS = 4, ITEMS = 11, COUNT = 16, MINE = 0, PLACE = 1, QUEUE = 5 };

static int *buf, *got;
static ncclWindow_t window;

static void put(int peer, int block) {
    MUST(ncclPutSignal(buf + MINE * COUNT, COUNT, ncclInt32, peer, window,
                       (size_t)block * COUNT * sizeof(int), 0, 0, 0, comm, stream));
}

static void wait_for(int peer) {
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
    MUST(ncclWaitSignal(1, &one, comm, stream));
}

static void copy(int *to, int block) {
    MUST(cudaMemcpyAsync(to, buf + block * COUNT, COUNT * sizeof(int),
                         cudaMemcpyDeviceToDevice, stream));
}

static void halo(void) {
    int left = (rank + nranks - 1) % nranks, right = (rank + 1) % nranks;
    for (int i = 0; i < STEPS; i++) {
        put(left, PLACE + 2 + i % 2);
        put(right, PLACE + i % 2);
        wait_for(left); // of two ranks it is the same one, whose second put this reads
        wait_for(right);
        copy(got, PLACE + i % 2);
        copy(got + COUNT, PLACE + 2 + i % 2);
        if (i % 5 == 4)
            MUST(cudaStreamSynchronize(stream));
        if (i % 10 == 9)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(got, COUNT, left);
    EXPECT_INTS(got + COUNT, COUNT, right);
}

static void queue(void) {
    for (int s = 0; rank == 1 && s < SLOTS; s++)
        MUST(ncclSignal(0, 0, 0, 0, comm, stream));
    for (int i = 0; i < ITEMS && rank < 2; i++) {
        wait_for(1 - rank);
        if (rank == 0) {
            put(1, QUEUE + i % SLOTS);
        } else {
            copy(got, QUEUE + i % SLOTS);
            MUST(ncclSignal(0, 0, 0, 0, comm, stream));
        }
    }
    MUST(cudaStreamSynchronize(stream));
}

int main(void) {
    start();
    const size_t bytes = (QUEUE + SLOTS) * COUNT * sizeof(int);
    int byte, *values = device_ints(COUNT, rank);
    got = device_ints(2 * COUNT, 0);
    MUST(ncclMemAlloc((void **)&buf, bytes));
    MUST(cudaMemset(buf, 0, bytes));
    MUST(cudaMemcpy(buf, values, COUNT * sizeof(int), cudaMemcpyDeviceToDevice));
    MUST(cudaStreamSynchronize(0));
    MUST(ncclCommWindowRegister(comm, buf, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    // What is read before the others put: they hear of it.
    EXPECT_INTS(buf + QUEUE * COUNT, COUNT, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    halo();
    MPI_Barrier(MPI_COMM_WORLD);
    queue();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        copy(got, QUEUE);
        MUST(cudaStreamSynchronize(stream));
        MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        put(1, QUEUE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        copy(got, QUEUE + 1);
    MUST(ncclAllReduce(values, values, COUNT, ncclInt32, ncclMax, comm, stream));
    if (rank == 0)
        put(1, QUEUE + 1);
    else if (rank == 1)
        wait_for(0), wait_for(0);
    MUST(cudaStreamSynchronize(stream));
    end_window(buf, window);
    MUST(cudaFree(got));
    MUST(cudaFree(values));
    finish();
    return 0;
}
