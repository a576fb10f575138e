// Rank 1 writes into rank 0's memory and then makes a file; rank 0 looks until it is
// there, and reads; then a file for the other direction. No call of MPI is between them.
#include "../check.h"

#include <fcntl.h>
#include <sys/stat.h>

static char name[64];

static void tell(int number) {
    snprintf(name, sizeof name, "/dev/shm/ipc-by-file-%d", number);
    close(open(name, O_CREAT | O_WRONLY, 0600));
}

static void hear(int number) {
    struct stat what;
    snprintf(name, sizeof name, "/dev/shm/ipc-by-file-%d", number);
    while (stat(name, &what) != 0)
        usleep(1000);
    unlink(name);
}

int main(void) {
    start();
    int *mine = device_ints(4, rank + 1), *buf = NULL, host[4], number = getpid() * 2;
    cudaIpcMemHandle_t handle;
    if (rank == 0) {
        buf = device_ints(4, 0);
        MUST(cudaIpcGetMemHandle(&handle, buf));
    }
    MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MUST(cudaIpcOpenMemHandle((void **)&buf, handle, cudaIpcMemLazyEnablePeerAccess));
    for (int i = 0; i < 4; i++) {
        if (rank == 1) {
            MUST(cudaMemcpyAsync(buf, mine, sizeof host, cudaMemcpyDeviceToDevice,
                                 stream));
            MUST(cudaStreamSynchronize(stream));
            tell(number);
            hear(number + 1);
        } else if (rank == 0) {
            hear(number);
            MUST(cudaMemcpyAsync(host, buf, sizeof host, cudaMemcpyDeviceToHost, stream));
            MUST(cudaMemsetAsync(buf, 0, sizeof host, stream));
            MUST(cudaStreamSynchronize(stream));
            EXPECT(host[3], 2);
            tell(number + 1);
        }
    }
    if (rank == 1)
        MUST(cudaIpcCloseMemHandle(buf));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MUST(cudaFree(buf));
    MUST(cudaFree(mine));
    finish();
    return 0;
}
