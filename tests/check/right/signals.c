// A ring of puts and signals, many times, with waits that are queued long before. Then
// the ranks read what was put, and say so in shared memory, of which nobody tells the
// checks: the next put comes after that.
#include "../check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { ROUNDS = 20, COUNT = 4, BYTES = 4096 };

// One for each rank, 0.
static atomic_int *shared_counters(void) {
    char name[64];
    int maker = (int)getpid();
    MPI_Bcast(&maker, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/dev/shm/nccl-check-signals-%d", maker);
    int file = open(name, O_CREAT | O_RDWR, 0600);
    MUST(ftruncate(file, BYTES));
    atomic_int *counters = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(counters != MAP_FAILED, 1);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(name);
    return counters;
}

int main(void) {
    start();
    int right = (rank + 1) % nranks, left = (rank + nranks - 1) % nranks, got[COUNT];
    ncclWindow_t window;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = left};
    int *buf = window_memory(BYTES, &window), *place = buf + 16;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank > 0)
            MUST(ncclWaitSignal(1, &one, comm, stream));
        if (rank == 0 && i % 5 == 0)
            usleep(200000);
        MUST(ncclPutSignal(buf, COUNT, ncclInt32, right, window, 64, 0, 0, 0, comm,
                           stream));
        if (rank == 0)
            MUST(ncclWaitSignal(1, &one, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    atomic_int *taken = shared_counters();
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&taken[right]) < i)
            usleep(100);
        MUST(ncclPutSignal(buf, COUNT, ncclInt32, right, window, 64, 0, 0, 0, comm,
                           stream));
        MUST(ncclWaitSignal(1, &one, comm, stream));
        MUST(cudaMemcpyAsync(got, place, sizeof got, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        atomic_store(&taken[rank], i + 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    munmap(taken, BYTES);
    end_window(buf, window);
    finish();
    return 0;
}
