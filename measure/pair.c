/*
 * Why does a reduce with a broadcast behind it take longer than the two that nccl-tests
 * times one by one?
 *
 *     mpirun -np 2 pair
 *
 * Prints for each size, in µs: a reduce and a broadcast, each timed in a row of its own
 * kind, as nccl-tests does it; the two in turn, as lesson 08 does; and all three once
 * more, with a wait of the host and a barrier behind each, so that no two overlap.
 */
#include "clock.h"

enum { LARGEST = LESSON_CPU_BUILD ? 16 << 10 : 256 << 20, BATCH = 20 };
enum what { REDUCE, BROADCAST, PAIR };

static void queue(enum what what, const float *send, float *recv, size_t count,
                  ncclComm_t comm, cudaStream_t stream) {
    if (what != BROADCAST)
        CHECK_NCCL(ncclReduce(send, recv, count, ncclFloat, ncclSum, 0, comm, stream));
    if (what != REDUCE)
        CHECK_NCCL(ncclBroadcast(recv, recv, count, ncclFloat, 0, comm, stream));
}

int main(int argc, char **argv) {
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreate(&stream));
    float *send, *recv;
    CHECK_CUDA(cudaMalloc((void **)&send, LARGEST));
    CHECK_CUDA(cudaMalloc((void **)&recv, LARGEST));
    CHECK_CUDA(cudaMemset(send, 0, LARGEST));
    CHECK_CUDA(cudaMemset(recv, 0, LARGEST));

    if (rank == 0)
        printf("%27s%36s%36s\n%10s%12s%12s%12s%12s%12s%12s\n", "", "in a row",
               "one at a time", "B", "reduce", "broadcast", "both", "reduce", "broadcast",
               "both");
    for (size_t bytes = 1024; bytes <= LARGEST; bytes *= 4) {
        double seconds[2][3];
        for (int turn = 0; turn < 12; turn++) { // the first six warm up
            const int alone = turn / 3 % 2, what = turn % 3;
            struct stopwatch watch = {0};
            while (!stopwatch_settled(&watch)) {
                stopwatch_start(&watch);
                for (int i = 0; i < (alone ? 1 : BATCH); i++)
                    queue((enum what)what, send, recv, bytes / sizeof(float), comm,
                          stream);
                CHECK_CUDA(cudaStreamSynchronize(stream));
                stopwatch_stop(&watch, alone ? 1 : BATCH);
            }
            seconds[alone][what] = watch.seconds;
        }
        if (rank == 0)
            printf("%10zu%12.1f%12.1f%12.1f%12.1f%12.1f%12.1f\n", bytes,
                   1e6 * seconds[0][0], 1e6 * seconds[0][1], 1e6 * seconds[0][2],
                   1e6 * seconds[1][0], 1e6 * seconds[1][1], 1e6 * seconds[1][2]);
    }
    CHECK_CUDA(cudaFree(recv));
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
