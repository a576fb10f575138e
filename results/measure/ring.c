/*
 * How long the plain ring of lesson 05 takes, which doesn't time itself:
 *
 *     mpirun -np 4 ring -n COUNT
 */
#define main lesson_main
#include "../05-ring-allreduce/ring_allreduce.c"
#undef main

#include "clock.h"

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    struct ring r = {0};
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &r.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &r.nranks));
    size_t count;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements per rank", .number = &count, .usual = 1024, .least = 1},
        {0}};
    lesson_options(argc, argv, options);
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(r.rank % ndevices));
    ncclUniqueId id;
    if (r.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&r.comm, r.nranks, id, r.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&r.blas));
    CHECK_CUBLAS(cublasSetStream(r.blas, r.stream));
    float *mine, *sum, *host = lesson_malloc(count * sizeof(float));
    CHECK_CUDA(cudaMalloc((void **)&mine, count * sizeof(float)));
    CHECK_CUDA(cudaMalloc((void **)&sum, count * sizeof(float)));
    for (size_t i = 0; i < count; i++)
        host[i] = value(r.rank, i);
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaMemcpyAsync(b == 0 ? mine : sum, host, count * sizeof(float),
                                   cudaMemcpyHostToDevice, r.stream));
    ring_all_reduce(&r, mine, sum, count); // NCCL connects
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    check(sum, host, count);

    // Zeros: sums of sums would grow without end.
    CHECK_CUDA(cudaMemsetAsync(sum, 0, count * sizeof(float), r.stream));
    CHECK_CUDA(cudaMemsetAsync(mine, 0, count * sizeof(float), r.stream));
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    struct stopwatch watch = {0};
    const int repeat = count > 1 << 24 ? 3 : 20;
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < repeat; i++)
            ring_all_reduce(&r, mine, sum, count);
        CHECK_CUDA(cudaStreamSynchronize(r.stream));
        stopwatch_stop(&watch, repeat);
    }
    if (r.rank == 0)
        printf("a ring %.2f µs\n", watch.seconds * 1e6);
    const int exit_code = lesson_verdict("element");

    CHECK_CUDA(cudaFree(sum));
    CHECK_CUDA(cudaFree(mine));
    free(host);
    CHECK_CUBLAS(cublasDestroy(r.blas));
    CHECK_CUDA(cudaStreamDestroy(r.stream));
    CHECK_NCCL(ncclCommDestroy(r.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
