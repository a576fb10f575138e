// Two ranks that a process has forked off, without MPI, as Python's multiprocessing does;
// rank 1 gives another count if the argument is "wrong", and both end at once. With
// "leaves" it ends early, with "killed" by a signal, and a child of its own goes on. With
// "stopped" rank 0 stands still at its start, longer than rank 1 waits for an answer.
// With "early" rank 1 computes for long, and is ended when rank 0 has. With "past" rank 0
// uses too much memory, and a third rank has not come.
// With "groups" four ranks, who say nothing in RANK and WORLD_SIZE: communicators of two
// first, then one of all. With -DBELOW: a CUDA and an NCCL that do nothing.
#include <arpa/inet.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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
cudaError_t cudaDeviceSynchronize(void) {
    if (getenv("HANGS"))
        sleep(30);
    return cudaSuccess;
}
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
DOES_NOTHING(ncclResult_t, ncclGetUniqueId, ncclUniqueId *id)
NCCL_TOO(ncclGetUniqueId, ncclUniqueId *id)
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    if (nranks > 2)
        usleep(500000); // the others are not there yet
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
static ncclComm_t joined(int number, int nranks, int rank) {
    ncclUniqueId id = {{0}};
    struct sockaddr_in here = {.sin_family = AF_INET};
    const long key = (long)getppid() * 4 + number;
    ncclComm_t comm;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(id.internal, &key, sizeof key);
    memcpy(id.internal + 8, &here, sizeof here); // as NCCL does
    if (rank == 0)
        ncclGetUniqueId(&id); // which leaves it as it is
    ncclCommInitRank(&comm, nranks, id, rank);
    return comm;
}

static void dies(void) {
    if (fork() == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        sleep(10);
        _exit(0);
    }
    raise(SIGKILL);
}

static void rank_of(int rank, int nranks, const char *how) {
    const bool wrong = strcmp(how, "wrong") == 0, stopped = strcmp(how, "stopped") == 0;
    void *buffer;
    cudaSetDevice(0);
    ncclComm_t pair = nranks > 2 ? joined(1 + rank / 2, 2, rank % 2) : NULL;
    if (stopped && rank == 1)
        usleep(300000);
    ncclComm_t comm = joined(0, nranks, rank);
    if (rank == 1 && strcmp(how, "leaves") == 0)
        _exit(0);
    if (stopped && rank == 0)
        raise(SIGSTOP);
    cudaMalloc(&buffer, 4096);
    const bool past = strcmp(how, "past") == 0;
    if (past)
        sleep(rank == 0 ? 1 : 10);
    const size_t count = rank == 1 && (wrong || stopped) ? 5 : past ? 5000 : 4;
    ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, NULL);
    cudaDeviceSynchronize();
    if (rank == 1 && strcmp(how, "early") == 0)
        sleep(60);
    if (!wrong)
        sleep(stopped ? 5 : 1); // as training would
    if (rank == 1 && strcmp(how, "killed") == 0)
        dies();
    sleep(rank == 0 && strcmp(how, "killed") == 0);
    cudaFree(buffer);
    ncclCommDestroy(comm);
    if (pair)
        ncclCommDestroy(pair);
    puts("ended");
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    const int nranks = strcmp(how, "groups") == 0 ? 4 : 2;
    char text[16];
    int status, bad = 0;
    pid_t last = 0;
    const time_t begun = time(NULL);
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("MASTER_PORT", text, 1);
    for (int rank = 0; rank < nranks; rank++) {
        // As Debian's /etc/hosts has it for the machine's own name.
        setenv("MASTER_ADDR", rank == 0 ? "127.0.1.1" : "127.0.0.1", 1);
        snprintf(text, sizeof text, "%d", rank);
        if (nranks == 2) {
            setenv("WORLD_SIZE", strcmp(how, "past") == 0 ? "3" : "2", 1);
            setenv("RANK", text, 1);
        }
        if ((last = fork()) == 0)
            rank_of(rank, nranks, how);
    }
    if (strcmp(how, "early") == 0) {
        wait(&status);
        puts(time(NULL) - begun < 30 ? "soon" : "late");
        kill(last, SIGKILL);
    }
    for (pid_t child; (child = waitpid(-1, &status, WUNTRACED)) > 0;)
        if (WIFSTOPPED(status)) {
            sleep(4);
            kill(child, SIGCONT);
        } else {
            bad |= status;
        }
    return bad != 0;
}
#endif
