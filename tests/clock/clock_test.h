/* What the programs of tests/clock/clock.t begin and end with. */
#ifndef CLOCK_TEST_H
#define CLOCK_TEST_H

#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                           \
    do {                                                                     \
        int must_result = (int)(call);                                       \
        if (must_result != 0) {                                              \
            fprintf(stderr, "%s:%d: %d\n", __FILE__, __LINE__, must_result); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                    \
        }                                                                    \
    } while (0)

static int rank, nranks, ndevices;
static ncclComm_t comm;
static cudaStream_t stream;

static inline void open_all(int *argc, char ***argv) {
    ncclUniqueId id;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MUST(cudaGetDeviceCount(&ndevices));
    MUST(cudaSetDevice(rank % ndevices));
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    MUST(ncclCommInitRank(&comm, nranks, id, rank));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

static inline void close_all(void) {
    MUST(cudaStreamDestroy(stream));
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
}

/* On the GPU, all zero. */
static inline float *allocate(size_t bytes) {
    float *memory;
    MUST(cudaMalloc((void **)&memory, bytes));
    MUST(cudaMemset(memory, 0, bytes));
    MUST(cudaDeviceSynchronize());
    return memory;
}

#endif
