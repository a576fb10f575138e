// Two ranks that a process has forked off, without MPI, as Python's multiprocessing does;
// rank 1 gives another count if there is an argument. With -DBELOW: a CUDA and an NCCL
// that do nothing.
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef BELOW
#define DOES_NOTHING(result, name, ...) \
    result name(__VA_ARGS__) {          \
        return 0;                       \
    }
#define NCCL_TOO(name, ...)           \
    ncclResult_t name(__VA_ARGS__);   \
    ncclResult_t p##name(__VA_ARGS__) \
        __attribute__((alias(#name), visibility("default")));

DOES_NOTHING(cudaError_t, cudaSetDevice, int device)
DOES_NOTHING(cudaError_t, cudaDeviceSynchronize, void)
cudaError_t cudaGetDevice(int *device) {
    return *device = 0;
}
cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    *pointer = malloc(bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *pointer) {
    free(pointer);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device) {
    (void)device;
    snprintf(id, (size_t)bytes, "%d", (int)getpid());
    return cudaSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    *comm = malloc(64);
    return ncclSuccess;
}
NCCL_TOO(ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
DOES_NOTHING(ncclResult_t, ncclCommDestroy, ncclComm_t comm)
NCCL_TOO(ncclCommDestroy, ncclComm_t comm)
DOES_NOTHING(ncclResult_t, ncclAllReduce, const void *send, void *recv, size_t count,
             ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
NCCL_TOO(ncclAllReduce, const void *send, void *recv, size_t count, ncclDataType_t type,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
#else
static void rank_of(int rank, size_t count) {
    ncclUniqueId id = {{0}};
    ncclComm_t comm;
    void *buffer;
    setenv("RANK", rank ? "1" : "0", 1);
    cudaSetDevice(0);
    ncclCommInitRank(&comm, 2, id, rank);
    cudaMalloc(&buffer, 4096);
    ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, NULL);
    cudaDeviceSynchronize();
    sleep(1); // as training would
    cudaFree(buffer);
    ncclCommDestroy(comm);
    puts("ended");
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv) {
    char port[16];
    int status, bad = 0;
    (void)argv;
    snprintf(port, sizeof port, "%d", (int)getpid());
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port, 1);
    for (int rank = 0; rank < 2; rank++)
        if (fork() == 0)
            rank_of(rank, argc > 1 && rank == 1 ? 5 : 4);
    while (wait(&status) > 0)
        bad |= status;
    return bad != 0;
}
#endif
