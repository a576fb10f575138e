/*
 * Is it the buffers that a large all-to-all's time depends on?
 *
 *     mpirun -np 4 buffers
 *
 * Times one on several pairs of buffers in turn, and on each once more. measure.sh starts
 * it three times: within a start the times agree, from one start to the next they do not.
 */
#include "clock.h"

enum { PAIRS = 3, LARGEST = LESSON_CPU_BUILD ? 32 << 10 : 512 << 20 };

/* Queues `repeat` of them, waits, and stops the watch. */
static void batch(struct stopwatch *watch, int repeat, const float *send, float *recv,
                  size_t part, int nranks, ncclComm_t comm, cudaStream_t stream) {
    stopwatch_start(watch);
    for (int i = 0; i < repeat; i++) {
        CHECK_NCCL(ncclGroupStart());
        for (int peer = 0; peer < nranks; peer++) {
            const size_t at = (size_t)peer * part;
            CHECK_NCCL(ncclSend(send + at, part, ncclFloat, peer, comm, stream));
            CHECK_NCCL(ncclRecv(recv + at, part, ncclFloat, peer, comm, stream));
        }
        CHECK_NCCL(ncclGroupEnd());
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    stopwatch_stop(watch, repeat);
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
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    float *send[PAIRS], *recv[PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
        CHECK_CUDA(cudaMalloc((void **)&send[pair], LARGEST));
        CHECK_CUDA(cudaMalloc((void **)&recv[pair], LARGEST));
        CHECK_CUDA(cudaMemsetAsync(send[pair], 1, LARGEST, stream));
    }

    double warm_up = LESSON_CPU_BUILD ? 0 : 0.3; // seconds, until the GPU is awake
    for (size_t bytes = LARGEST / 8; bytes <= LARGEST; bytes *= 2) {
        const size_t part = bytes / sizeof(float) / (size_t)nranks;
        for (int turn = 0; turn < 2; turn++) {
            if (rank == 0)
                printf("%s %9zu B, µs:", turn == 0 ? "each pair, " : "once more, ",
                       bytes);
            for (int pair = 0; pair < PAIRS; pair++) {
                struct stopwatch warm = {0}, watch = {0};
                int repeat = 1;
                while (warm.nbatches < 2 || warm.spent < warm_up) {
                    batch(&warm, repeat, send[pair], recv[pair], part, nranks, comm,
                          stream);
                    const double fit = 0.02 / warm.seconds;
                    repeat = fit < 1 ? 1 : fit < 20 ? (int)fit : 20;
                }
                while (!stopwatch_settled(&watch))
                    batch(&watch, repeat, send[pair], recv[pair], part, nranks, comm,
                          stream);
                warm_up = 0;
                if (rank == 0)
                    printf(" %8.1f", watch.seconds * 1e6);
            }
            if (rank == 0)
                printf("\n");
        }
    }

    for (int pair = 0; pair < PAIRS; pair++) {
        CHECK_CUDA(cudaFree(recv[pair]));
        CHECK_CUDA(cudaFree(send[pair]));
    }
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return 0;
}
