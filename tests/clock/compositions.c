/*
 * What is made of several operations, timed by the modelled clock: large ones once, small
 * ones twenty times, one behind the other, as the lessons do. Rank 0 prints a line for
 * each: name, bytes, milliseconds.
 *
 *     NCCL_CPU_CLOCK=h200 mpirun -np 4 ./compositions NAME BYTES NAME BYTES…
 *
 * The data of a ring is a chunk that is sent on and on: a ring's time does not depend on
 * what is in it, and so 1 GiB takes a quarter of the memory.
 */
#include "clock_test.h"

#include <cublas_v2.h>

enum { LANES = 4 };

static cublasHandle_t blas;

static void send_on(const float *from, float *to, size_t n, ncclComm_t c,
                    cudaStream_t s) {
    MUST(ncclGroupStart());
    MUST(ncclSend(from, n, ncclFloat32, (rank + 1) % nranks, c, s));
    MUST(ncclRecv(to, n, ncclFloat32, (rank + nranks - 1) % nranks, c, s));
    MUST(ncclGroupEnd());
}

/* As lesson 05 has it. */
static void ring_plain(float *buffers[3], size_t count) {
    const size_t n = count / (size_t)nranks;
    const float one = 1;
    for (int step = 0; step < 2 * (nranks - 1); step++) {
        float *to = buffers[1 + step % 2];
        send_on(step == 0 ? buffers[0] : buffers[1 + (step + 1) % 2], to, n, comm,
                stream);
        if (step < nranks - 1)
            MUST(cublasSaxpy_64(blas, (int64_t)n, &one, buffers[0], 1, to, 1));
    }
}

static struct {
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t received, added, done;
} lanes[LANES];
static cudaStream_t adding;
static cudaEvent_t begin;

static void open_lanes(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int units;
    MUST(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0));
    config.maxCTAs = units / (LANES + 1) > 1 ? units / (LANES + 1) : 1;
    MUST(cudaStreamCreateWithFlags(&adding, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
    for (int l = 0; l < LANES; l++) {
        MUST(ncclCommSplit(comm, 0, rank, &lanes[l].comm, &config));
        MUST(cudaStreamCreateWithFlags(&lanes[l].stream, cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&lanes[l].received, cudaEventDisableTiming));
        MUST(cudaEventCreateWithFlags(&lanes[l].added, cudaEventDisableTiming));
        MUST(cudaEventCreateWithFlags(&lanes[l].done, cudaEventDisableTiming));
    }
}

static void close_lanes(void) {
    for (int l = 0; l < LANES; l++) {
        MUST(cudaEventDestroy(lanes[l].received));
        MUST(cudaEventDestroy(lanes[l].added));
        MUST(cudaEventDestroy(lanes[l].done));
        MUST(cudaStreamDestroy(lanes[l].stream));
        MUST(ncclCommDestroy(lanes[l].comm));
    }
    MUST(cudaEventDestroy(begin));
    MUST(cudaStreamDestroy(adding));
}

/* As lesson 09 has it, in four pieces: while one is added, others travel. */
static void ring_pipelined(float *buffers[3], size_t count) {
    const size_t n = count / (size_t)nranks / LANES;
    const float one = 1;
    MUST(cudaEventRecord(begin, stream));
    for (int l = 0; l < LANES; l++)
        MUST(cudaStreamWaitEvent(lanes[l].stream, begin, 0));
    MUST(cublasSetStream(blas, adding));
    for (int step = 0; step < 2 * (nranks - 1); step++)
        for (int l = 0; l < LANES; l++) {
            const size_t at = n * (size_t)l;
            float *to = buffers[1 + step % 2] + at;
            MUST(cudaStreamWaitEvent(lanes[l].stream, lanes[l].added, 0));
            send_on((step == 0 ? buffers[0] : buffers[1 + (step + 1) % 2]) + at, to, n,
                    lanes[l].comm, lanes[l].stream);
            if (step >= nranks - 1)
                continue;
            MUST(cudaEventRecord(lanes[l].received, lanes[l].stream));
            MUST(cudaStreamWaitEvent(adding, lanes[l].received, 0));
            MUST(cublasSaxpy_64(blas, (int64_t)n, &one, buffers[0] + at, 1, to, 1));
            MUST(cudaEventRecord(lanes[l].added, adding));
        }
    for (int l = 0; l < LANES; l++) {
        MUST(cudaEventRecord(lanes[l].done, lanes[l].stream));
        MUST(cudaStreamWaitEvent(stream, lanes[l].done, 0));
    }
    MUST(cublasSetStream(blas, stream));
}

static void reduce_broadcast(float *buffer, size_t count) {
    MUST(ncclReduce(buffer, buffer, count, ncclFloat32, ncclSum, 0, comm, stream));
    MUST(ncclBroadcast(buffer, buffer, count, ncclFloat32, 0, comm, stream));
}

static void scatter_gather(float *buffer, size_t count) {
    const size_t n = count / (size_t)nranks;
    float *mine = buffer + n * (size_t)rank;
    MUST(ncclReduceScatter(buffer, mine, n, ncclFloat32, ncclSum, comm, stream));
    MUST(ncclAllGather(mine, buffer, n, ncclFloat32, comm, stream));
}

/* From GPU 0 to GPU 1 of one process. */
static void copy_to_next(float *there, const float *buffer, size_t count) {
    MUST(
        cudaMemcpyAsync(there, buffer, count * sizeof(float), cudaMemcpyDefault, stream));
}

static void queue(const char *name, float *buffers[3], float *there, size_t count) {
    if (strcmp(name, "ring") == 0)
        ring_plain(buffers, count);
    else if (strcmp(name, "ring_pipelined") == 0)
        ring_pipelined(buffers, count);
    else if (strcmp(name, "reduce_broadcast") == 0)
        reduce_broadcast(buffers[0], count);
    else if (strcmp(name, "reduce_scatter_all_gather") == 0)
        scatter_gather(buffers[0], count);
    else
        copy_to_next(there, buffers[0], count);
}

/* On the next GPU, of the same process. */
static float *other_gpu(size_t bytes) {
    MUST(cudaSetDevice((rank + 1) % ndevices));
    float *memory = allocate(bytes);
    MUST(cudaSetDevice(rank % ndevices));
    return memory;
}

/* Of the ring so many bytes are spread over all ranks. */
static size_t bytes_here(const char *name, size_t bytes) {
    return strncmp(name, "ring", 4) == 0 ? bytes / (size_t)nranks : bytes;
}

int main(int argc, char **argv) {
    open_all(&argc, &argv);
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    open_lanes();
    // The same memory for all: the system takes its time to find some.
    float *buffers[3] = {NULL, NULL, NULL};
    size_t room[3] = {0, 0, 0};
    for (int i = 1; i + 1 < argc; i += 2)
        for (int b = 0; b < (strncmp(argv[i], "ring", 4) == 0 ? 3 : 1); b++) {
            size_t bytes = bytes_here(argv[i], strtoull(argv[i + 1], NULL, 10));
            room[b] = bytes > room[b] ? bytes : room[b];
        }
    for (int b = 0; b < 3; b++)
        buffers[b] = room[b] ? allocate(room[b]) : NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const size_t bytes = strtoull(argv[i + 1], NULL, 10),
                     count = bytes / sizeof(float);
        float *there = strncmp(name, "copy", 4) == 0 ? other_gpu(bytes) : NULL;
        if (strcmp(name, "copy_peer") == 0)
            MUST(cudaDeviceEnablePeerAccess((rank + 1) % ndevices, 0));
        MPI_Barrier(MPI_COMM_WORLD);
        const int times = bytes <= 16 << 20 ? 20 : 1;
        double seconds = -MPI_Wtime();
        for (int k = 0; k < times; k++)
            queue(name, buffers, there, count);
        MUST(cudaStreamSynchronize(stream));
        seconds = (seconds + MPI_Wtime()) / times;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s %zu %.4f\n", name, bytes, seconds * 1e3);
        MUST(cudaFree(there));
    }
    for (int b = 0; b < 3; b++)
        MUST(cudaFree(buffers[b]));
    close_lanes();
    MUST(cublasDestroy(blas));
    close_all();
    return 0;
}
