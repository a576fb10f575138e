/*
 * A program without MPI that a shell loop starts: rank and size come from torchrun's
 * variables, the unique id goes through a file, the first argument. The second one says
 * what rank 1 does wrong.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 5000 };

static int rank;
static void must(int error, const char *call) {
    if (error == 0)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, call, ncclGetLastError(NULL));
    exit(3);
}
#define MUST(call) must((int)(call), #call)

static ncclUniqueId bring_id(const char *file) {
    ncclUniqueId id;
    char ready[300];
    snprintf(ready, sizeof ready, "%s.ready", file);
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
        FILE *out = fopen(ready, "w");
        fwrite(&id, sizeof id, 1, out);
        fclose(out);
        rename(ready, file);
        return id;
    }
    FILE *in;
    while (!(in = fopen(file, "r")))
        usleep(1000);
    if (fread(&id, sizeof id, 1, in) != 1)
        exit(4);
    fclose(in);
    return id;
}

int main(int argc, char **argv) {
    const char *fault = argc > 2 ? argv[2] : "";
    rank = atoi(getenv("RANK"));
    int nranks = atoi(getenv("WORLD_SIZE")), devices;
    ncclUniqueId id = bring_id(argv[1]);
    ncclComm_t comm;
    float *data, host = (float)rank + 1;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaSetDevice(rank % devices));
    MUST(ncclCommInitRank(&comm, nranks, id, rank));
    MUST(cudaMalloc((void **)&data, N * sizeof *data));
    MUST(cudaMemset(data, 0, N * sizeof *data));
    MUST(cudaMemcpy(data, &host, sizeof host, cudaMemcpyHostToDevice));
    if (rank == 1 && strcmp(fault, "killed") == 0)
        raise(SIGKILL);
    if (rank == 1 && strcmp(fault, "code") == 0)
        exit(7);
    size_t count = rank == 1 && strcmp(fault, "count") == 0 ? N - 1 : N;
    MUST(ncclAllReduce(data, data, count, ncclFloat, ncclSum, comm, NULL));
    MUST(cudaStreamSynchronize(NULL));
    MUST(cudaMemcpy(&host, data, sizeof host, cudaMemcpyDeviceToHost));
    printf("rank %d: %g\n", rank, host);
    MUST(cudaFree(data));
    MUST(ncclCommDestroy(comm));
    return 0;
}
