// Memory of the program's own is registered (cudaHostRegister): half of an array, on
// whose pages other variables lie. Copies come and go there, MPI and a pipe fill it in
// turn, while the host uses its neighbours.
#include "../check.h"

enum { COUNT = 700, ROUNDS = 6 };

int main(void) {
    start();
    struct {
        int before[COUNT], own[COUNT], behind[COUNT];
    } *host = calloc(1, sizeof *host);
    int *buf = device_ints(COUNT, 0), from[COUNT], files[2];
    size_t bytes = sizeof host->own;
    MUST(pipe(files));
    MUST(cudaHostRegister(host->own, bytes, cudaHostRegisterDefault));
    for (int round = 0; round < ROUNDS; round++) {
        int *into = round % 3 == 0 ? host->own : from;
        for (int i = 0; i < COUNT; i++)
            into[i] = rank + round;
        if (round % 3 == 1)
            MPI_Sendrecv(from, COUNT, MPI_INT, rank, 0, host->own, COUNT, MPI_INT, rank,
                         0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round % 3 == 2) {
            EXPECT(write(files[1], from, bytes), bytes);
            EXPECT(read(files[0], host->own, bytes), bytes);
        }
        MUST(cudaMemcpyAsync(buf, host->own, bytes, cudaMemcpyHostToDevice, stream));
        MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
        MUST(cudaMemcpyAsync(host->own, buf, bytes, cudaMemcpyDeviceToHost, stream));
        for (int i = 0; i < COUNT; i++)
            host->before[i] = host->behind[i]++;
        MUST(cudaStreamSynchronize(stream));
        for (int i = 0; i < COUNT; i++)
            EXPECT(host->own[i], sum_of_ranks() + nranks * round);
    }
    EXPECT(host->behind[COUNT - 1], ROUNDS);
    MUST(cudaHostUnregister(host->own));
    close(files[0]);
    close(files[1]);
    free(host);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
