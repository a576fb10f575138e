// What a call costs under nccl-check, and without it. A program's pace changes from start
// to start by more than the checks cost. So both ways are timed in turn in one process:
// NCCL's function by its own name, in front of which nccl-check stands, and by the name
// that begins with p (NCCL's profiling interface), in front of which nothing does.
// Without nccl-check the two are the same, and show what the measurement itself is worth.
//
// Prints for each size, first as it is without and then as it is with the checks, in µs,
// medians over many rounds of the slowest rank:
//   call      ncclAllReduce, from the call to the return
//   wait      ncclAllReduce and cudaStreamSynchronize
//   queued    one of 20 that are queued one after the other, and waited for together
#define _GNU_SOURCE
#include "lesson.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

enum { ROUNDS = 301, QUEUED = 20, WAYS = 2 };

__typeof__(ncclAllReduce) pncclAllReduce;

// CUDA has no second names. Its function is looked up in its own library.
static __typeof__(&cudaStreamSynchronize) own_synchronize;

static int is_cuda(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(library->dlpi_name, "libcudart.so") &&
        !strstr(library->dlpi_name, "libnccl-cpu.so"))
        return 0;
    void *file = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    void *found = file ? dlsym(file, "cudaStreamSynchronize") : NULL;
    memcpy(&own_synchronize, &found, sizeof found);
    return found != NULL;
}

static double now(void) {
    return MPI_Wtime() * 1e6;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int n) {
    MPI_Allreduce(MPI_IN_PLACE, times, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(times, (size_t)n, sizeof *times, by_value);
    return times[n / 2];
}

int main(int argc, char **argv) {
    static double call[WAYS][ROUNDS], wait[WAYS][ROUNDS], queued[WAYS][ROUNDS];
    int rank, nranks;
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    int devices;
    CHECK_CUDA(cudaGetDeviceCount(&devices));
    CHECK_CUDA(cudaSetDevice(rank % devices));
    lesson_one_gpu_per_rank();
    size_t largest = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)256 << 20;
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    ncclComm_t comm;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreate(&stream));
    float *in, *out;
    CHECK_CUDA(cudaMalloc((void **)&in, largest));
    CHECK_CUDA(cudaMalloc((void **)&out, largest));
    CHECK_CUDA(cudaMemset(in, 0, largest));

    if (!dl_iterate_phdr(is_cuda, NULL))
        lesson_fail("the CUDA runtime is not a library of its own here");
    const __typeof__(&ncclAllReduce) all_reduce[WAYS] = {pncclAllReduce, ncclAllReduce};
    const __typeof__(&cudaStreamSynchronize) synchronize[WAYS] = {own_synchronize,
                                                                  cudaStreamSynchronize};
    for (size_t bytes = 8; bytes <= largest; bytes = bytes == 8 ? 1 << 20 : bytes * 4) {
        int rounds = bytes > 64 << 20 ? 31 : ROUNDS;
        size_t n = bytes / sizeof *in;
        for (int i = -20; i < rounds; i++) // below 0: to warm up
            for (int way = 0; way < WAYS; way++) {
                int at = i < 0 ? 0 : i;
                MPI_Barrier(MPI_COMM_WORLD);
                double start = now();
                CHECK_NCCL(all_reduce[way](in, out, n, ncclFloat, ncclSum, comm, stream));
                call[way][at] = now() - start;
                CHECK_CUDA(synchronize[way](stream));
                wait[way][at] = now() - start;
                MPI_Barrier(MPI_COMM_WORLD);
                start = now();
                for (int k = 0; k < QUEUED; k++)
                    CHECK_NCCL(
                        all_reduce[way](in, out, n, ncclFloat, ncclSum, comm, stream));
                CHECK_CUDA(synchronize[way](stream));
                queued[way][at] = (now() - start) / QUEUED;
            }
        if (rank == 0)
            printf("%zu", bytes);
        for (int way = 0; way < WAYS; way++) {
            double a = median(call[way], rounds), b = median(wait[way], rounds),
                   c = median(queued[way], rounds);
            if (rank == 0)
                printf(" %.3f %.3f %.3f", a, b, c);
        }
        if (rank == 0)
            printf("\n");
    }
    CHECK_CUDA(cudaFree(out));
    CHECK_CUDA(cudaFree(in));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
