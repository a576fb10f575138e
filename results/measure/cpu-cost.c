/*
 * cpu-cost.c: what the CPU build costs, beside the same operation written in MPI.
 *
 *     make benchmark
 *
 * Plain MPI and the CPU build take turns, so that what else the machine does hits both
 * alike. A time runs from the first rank's start to the last rank's end; shown is the
 * mean of the middle half.
 */
#include <malloc.h>
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4001 };
enum way { PLAIN_MPI, CPU_BUILD };
static int rank, nranks;
static ncclComm_t comm;
static cudaStream_t stream;
static char *host_send, *host_recv, *send, *recv;

struct operation {
    const char *name;
    void (*mpi)(size_t bytes);
    void (*nccl)(size_t bytes);
};

/* `bytes` is the larger of a rank's two buffers. PMPI: MPI itself, not watched by us. */
static void mpi_all_reduce(size_t bytes) {
    PMPI_Allreduce(host_send, host_recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD);
}
static void nccl_all_reduce(size_t bytes) {
    ncclAllReduce(send, recv, bytes / 4, ncclFloat32, ncclSum, comm, stream);
}
static void mpi_broadcast(size_t bytes) {
    PMPI_Bcast(host_recv, (int)(bytes / 4), MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void nccl_broadcast(size_t bytes) {
    ncclBroadcast(recv, recv, bytes / 4, ncclFloat32, 0, comm, stream);
}
static void mpi_reduce(size_t bytes) {
    PMPI_Reduce(host_send, host_recv, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, 0,
                MPI_COMM_WORLD);
}
static void nccl_reduce(size_t bytes) {
    ncclReduce(send, recv, bytes / 4, ncclFloat32, ncclSum, 0, comm, stream);
}
static void mpi_all_gather(size_t bytes) {
    int count = (int)(bytes / (size_t)nranks);
    PMPI_Allgather(host_send, count, MPI_BYTE, host_recv, count, MPI_BYTE,
                   MPI_COMM_WORLD);
}
static void nccl_all_gather(size_t bytes) {
    ncclAllGather(send, recv, bytes / (size_t)nranks, ncclUint8, comm, stream);
}
static size_t chunk(size_t bytes) { // floats of the result, at least one
    return bytes / 4 / (size_t)nranks ? bytes / 4 / (size_t)nranks : 1;
}
static void mpi_reduce_scatter(size_t bytes) {
    PMPI_Reduce_scatter_block(host_send, host_recv, (int)chunk(bytes), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
}
static void nccl_reduce_scatter(size_t bytes) {
    ncclReduceScatter(send, recv, chunk(bytes), ncclFloat32, ncclSum, comm, stream);
}
static void mpi_all_to_all(size_t bytes) {
    int count = (int)(bytes / (size_t)nranks);
    PMPI_Alltoall(host_send, count, MPI_BYTE, host_recv, count, MPI_BYTE, MPI_COMM_WORLD);
}
static void nccl_all_to_all(size_t bytes) {
    ncclAlltoAll(send, recv, bytes / (size_t)nranks, ncclUint8, comm, stream);
}

static const struct operation operations[] = {
    {"all-reduce", mpi_all_reduce, nccl_all_reduce},
    {"broadcast", mpi_broadcast, nccl_broadcast},
    {"reduce", mpi_reduce, nccl_reduce},
    {"all-gather", mpi_all_gather, nccl_all_gather},
    {"reduce-scatter", mpi_reduce_scatter, nccl_reduce_scatter},
    {"all-to-all", mpi_all_to_all, nccl_all_to_all},
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(const struct operation *operation, enum way way, size_t bytes) {
    if (way == PLAIN_MPI) {
        operation->mpi(bytes);
    } else {
        operation->nccl(bytes);
        cudaStreamSynchronize(stream);
    }
}

/* Means in µs of both ways, in turn, `n` times each. */
static void measure(const struct operation *operation, size_t bytes, int n,
                    double means[2]) {
    static double start[2][MOST], end[2][MOST], first[MOST], last[MOST];
    const int uncounted = 6;
    for (int i = -uncounted; i < n; i++)
        for (int turn = 0; turn < 2; turn++) {
            // They take turns at being first: each finds the cache as the other left it.
            int w = (i + uncounted + turn) % 2;
            run(operation, w, bytes); // so that it finds its own buffers there
            PMPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            run(operation, w, bytes);
            if (i >= 0) {
                start[w][i] = begun;
                end[w][i] = MPI_Wtime();
            }
        }
    for (int w = 0; w < 2; w++) {
        PMPI_Reduce(start[w], first, n, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        PMPI_Reduce(end[w], last, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            last[i] = (last[i] - first[i]) * 1e6;
        qsort(last, (size_t)n, sizeof(double), by_value);
        means[w] = 0; // of the middle half
        for (int i = n / 4; i < n - n / 4; i++)
            means[w] += last[i] / (n - n / 4 * 2);
    }
}

int main(int argc, char **argv) {
    // What MPI allocates for an operation stays mapped: fresh pages cost more than data.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    cudaSetDevice(rank);
    ncclUniqueId id;
    if (rank == 0)
        ncclGetUniqueId(&id);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (ncclCommInitRank(&comm, nranks, id, rank) != ncclSuccess)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const size_t sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20};
    const size_t most = 64 << 20;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc((void **)&send, most);
    cudaMalloc((void **)&recv, most);
    cudaMemsetAsync(send, 1, most, stream);
    cudaMemsetAsync(recv, 1, most, stream);
    cudaStreamSynchronize(stream);
    host_send = calloc(most, 1);
    host_recv = calloc(most, 1);
    memset(host_send, 1, most); // what was never written would be read from one page
    memset(host_recv, 1, most);
    if (rank == 0)
        printf("%d ranks; times in µs\n"
               "%-15s %9s %10s %10s %6s\n",
               nranks, "operation", "bytes", "MPI", "CPU build", "ratio");
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
        for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
            size_t bytes = sizes[z];
            double t[2];
            int n = bytes <= 1024        ? 1998
                    : bytes < (1 << 20)  ? 600
                    : bytes < (8 << 20)  ? 300
                    : bytes < (64 << 20) ? 60
                                         : 30;
            measure(&operations[o], bytes, n, t);
            if (rank == 0) {
                printf("%-15s %9zu %10.1f %10.1f %6.2f\n", operations[o].name, bytes,
                       t[PLAIN_MPI], t[CPU_BUILD], t[CPU_BUILD] / t[PLAIN_MPI]);
                fflush(stdout);
            }
        }
    free(host_send);
    free(host_recv);
    cudaFree(send);
    cudaFree(recv);
    cudaStreamDestroy(stream);
    ncclCommDestroy(comm);
    MPI_Finalize();
}
