// A function on the stream waits until the host has filled the memory that the copy
// after it reads: a gate. The host fills it, by itself, by MPI and from a pipe in turn,
// and opens the gate with an atomic variable. It waits for the result in the same way.
// One all-reduce comes before: on an H200 the first launch of NCCL's kernel waits for
// functions on the stream.
#include "../check.h"

#include <sched.h>
#include <stdatomic.h>

enum { COUNT = 1000, ROUNDS = 12 };
static atomic_int open_for, done;

static void gate(void *round) {
    while (atomic_load(&open_for) < (int)(intptr_t)round)
        sched_yield();
}

static void tell(void *round) {
    atomic_store(&done, (int)(intptr_t)round);
}

int main(void) {
    start();
    int *pinned, *buf = device_ints(COUNT, 0), from[COUNT], files[2];
    size_t bytes = sizeof from;
    MUST(cudaMallocHost((void **)&pinned, bytes));
    MUST(pipe(files));
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    for (int round = 1; round <= ROUNDS; round++) {
        void *number = (void *)(intptr_t)round;
        MUST(cudaLaunchHostFunc(stream, gate, number));
        MUST(cudaMemcpyAsync(buf, pinned, bytes, cudaMemcpyHostToDevice, stream));
        MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
        MUST(cudaMemcpyAsync(pinned, buf, bytes, cudaMemcpyDeviceToHost, stream));
        MUST(cudaLaunchHostFunc(stream, tell, number));
        int *into = round % 3 == 0 ? pinned : from;
        for (int i = 0; i < COUNT; i++)
            into[i] = rank + round;
        if (round % 3 == 1)
            MPI_Sendrecv(from, COUNT, MPI_INT, rank, 0, pinned, COUNT, MPI_INT, rank, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round % 3 == 2) {
            EXPECT(write(files[1], from, bytes), bytes);
            EXPECT(read(files[0], pinned, bytes), bytes);
        }
        atomic_store(&open_for, round);
        while (atomic_load(&done) < round)
            sched_yield();
        for (int i = 0; i < COUNT; i++)
            EXPECT(pinned[i], sum_of_ranks() + nranks * round);
    }
    MUST(cudaStreamSynchronize(stream));
    close(files[0]);
    close(files[1]);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
