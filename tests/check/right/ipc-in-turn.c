// All ranks write into rank 0's memory, each its own part, and read all of it: put in
// order by a barrier, by messages, by a collective on the stream, which no host waits
// for.
#include "../check.h"

static int *all, *mine, *copy;

static void write_part(void) {
    MUST(
        cudaMemcpyAsync(all + rank, mine, sizeof(int), cudaMemcpyDeviceToDevice, stream));
}

static void read_all(int *host) {
    MUST(cudaMemcpyAsync(host, all, (size_t)nranks * sizeof(int), cudaMemcpyDeviceToHost,
                         stream));
}

int main(void) {
    start();
    int *host = malloc((size_t)nranks * sizeof(int)), token = 0;
    cudaIpcMemHandle_t handle;
    mine = device_ints(1, rank + 1);
    copy = device_ints(1, 0);
    if (rank == 0) {
        all = device_ints(nranks, 0);
        MUST(cudaIpcGetMemHandle(&handle, all));
    }
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank > 0)
        MUST(cudaIpcOpenMemHandle((void **)&all, handle, cudaIpcMemLazyEnablePeerAccess));
    for (int i = 0; i < 10; i++) {
        write_part();
        MUST(cudaStreamSynchronize(stream));
        MPI_Barrier(MPI_COMM_WORLD);
        read_all(host);
        MUST(cudaStreamSynchronize(stream));
        EXPECT(host[nranks - 1], nranks);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // In turn: who is done tells the next.
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MUST(cudaMemsetAsync(all, rank, (size_t)nranks * sizeof(int), stream));
    MUST(cudaStreamSynchronize(stream));
    if (rank < nranks - 1)
        MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    // By NCCL alone.
    for (int i = 0; i < 10; i++) {
        write_part();
        MUST(ncclAllReduce(copy, copy, 1, ncclInt32, ncclMax, comm, stream));
        read_all(host);
        MUST(ncclAllReduce(copy, copy, 1, ncclInt32, ncclMax, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT(host[nranks - 1], nranks);
    if (rank > 0)
        MUST(cudaIpcCloseMemHandle(all));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MUST(cudaFree(all));
    MUST(cudaFree(mine));
    MUST(cudaFree(copy));
    free(host);
    finish();
    return 0;
}
