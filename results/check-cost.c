// What a call costs: run with and without nccl-check in turn, the difference is the
// checks'. Prints for each size, in µs, medians over many rounds of the slowest rank:
//   call      ncclAllReduce, from the call to the return
//   wait      ncclAllReduce and cudaStreamSynchronize
//   queued    one of 20 that are queued one behind the other, and waited for together
#include "lesson.h"

#include <stdlib.h>

enum { ROUNDS = 301, QUEUED = 20 };

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
    static double call[ROUNDS], wait[ROUNDS], queued[ROUNDS];
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

    for (size_t bytes = 8; bytes <= largest; bytes = bytes == 8 ? 1 << 20 : bytes * 4) {
        int rounds = bytes > 64 << 20 ? 31 : ROUNDS;
        size_t n = bytes / sizeof *in;
        for (int warm = 0; warm < 20; warm++)
            CHECK_NCCL(ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        for (int i = 0; i < rounds; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now();
            CHECK_NCCL(ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, stream));
            call[i] = now() - start;
            CHECK_CUDA(cudaStreamSynchronize(stream));
            wait[i] = now() - start;
            MPI_Barrier(MPI_COMM_WORLD);
            start = now();
            for (int k = 0; k < QUEUED; k++)
                CHECK_NCCL(ncclAllReduce(in, out, n, ncclFloat, ncclSum, comm, stream));
            CHECK_CUDA(cudaStreamSynchronize(stream));
            queued[i] = (now() - start) / QUEUED;
        }
        double a = median(call, rounds), b = median(wait, rounds),
               c = median(queued, rounds);
        if (rank == 0)
            printf("%zu %.3f %.3f %.3f\n", bytes, a, b, c);
    }
    CHECK_CUDA(cudaFree(out));
    CHECK_CUDA(cudaFree(in));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
