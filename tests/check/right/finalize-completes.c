// ncclCommFinalize instead of a wait for the stream: when it has succeeded, "all
// uncompleted operations" are complete, and the results may be read (NCCL User Guide,
// ncclCommFinalize). And MPI writes one half of a pinned buffer to a file while the other
// half is downloaded to.
#include "../check.h"

enum { N = 3001 };

int main(void) {
    start();
    int *sum = device_ints(N, rank), *pinned;
    char name[64];
    MUST(ncclAllReduce(sum, sum, N, ncclInt32, ncclSum, comm, stream));
    MUST(ncclCommFinalize(comm));
    EXPECT_INTS(sum, N, sum_of_ranks());
    MUST(cudaMallocHost((void **)&pinned, 2 * N * sizeof *pinned));
    for (int i = 0; i < N; i++)
        pinned[i] = i;
    snprintf(name, sizeof name, "/tmp/finalize-completes-%d-%d", rank, (int)getpid());
    MPI_File file;
    MPI_Request request;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    for (int i = 0; i < 3; i++) {
        MUST(cudaMemcpyAsync(pinned + N, sum, N * sizeof *sum, cudaMemcpyDeviceToHost,
                             stream));
        MPI_File_iwrite_at(file, 0, pinned, N, MPI_INT, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MUST(cudaStreamSynchronize(stream));
    }
    EXPECT(pinned[2 * N - 1], sum_of_ranks());
    MPI_File_close(&file);
    unlink(name);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(sum));
    finish();
    return 0;
}
