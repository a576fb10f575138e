/*
 * A program of several processes that does not use MPI: mpirun starts them, and the
 * unique id goes through a file, whose name is the first argument. MPI is started, and
 * ended, by the library. The last rank comes when it has been said, in the file that is
 * the second argument, that it is missing.
 */
#define TAP_ALONE
#include "ints.h"
#include <unistd.h>

static bool was_said(const char *path, const char *what) {
    char text[4000] = "";
    FILE *file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    return strstr(text, what) != NULL;
}

int main(int argc, char **argv) {
    const char *number = getenv("OMPI_COMM_WORLD_RANK"),
               *all = getenv("OMPI_COMM_WORLD_SIZE");
    int rank = atoi(number ? number : getenv("PMI_RANK"));
    int nranks = atoi(all ? all : getenv("PMI_SIZE"));
    ncclUniqueId id;
    char ready[300];
    snprintf(ready, sizeof ready, "%s.ready", argc > 1 ? argv[1] : "id");
    tap_rank = rank;
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        FILE *file = fopen(ready, "w");
        fwrite(&id, sizeof id, 1, file);
        fclose(file);
        rename(ready, argv[1]);
    } else {
        FILE *file = NULL;
        for (int i = 0; i < 5000 && !file; i++) {
            usleep(2000);
            file = fopen(argv[1], "r");
        }
        if (!file || fread(&id, sizeof id, 1, file) != 1) {
            bail("no id");
        }
        fclose(file);
    }
    ncclComm_t comm = NULL;
    int devices = 0, *a, sum = nranks * (nranks - 1) / 2;
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(rank % devices));
    if (rank == nranks - 1) {
        char what[100];
        snprintf(what, sizeof what,
                 "%d of %d processes wait in ncclCommInitRank; missing: %d\n", nranks - 1,
                 nranks, nranks - 1);
        for (int i = 0; i < 4000 && !was_said(argv[2], what); i++)
            usleep(10000);
        expect(was_said(argv[2], what), "not said: %s", what);
    }
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    a = new_ints(5000);
    set_ints(a, 5000, rank);
    NCCL(ncclAllReduce(a, a, 5000, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    expect_ints(a, 5000, sum, "all-reduce");
    CUDA(cudaFree(a));
    NCCL(ncclCommDestroy(comm));
    if (rank > 0) { /* rank 0 speaks; the others' failures are the job's */
        return tap_failures > 0;
    }
    point("%d processes without MPI of their own", nranks);
    return finish();
}
