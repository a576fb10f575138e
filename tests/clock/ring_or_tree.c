/*
 * An all-reduce by hand, round a ring and up and down a tree: how long does each take?
 * For the modelled clock, on which one run of each is enough.
 *
 *     NCCL_CPU_CLOCK=h200 mpirun -np 64 ./ring_or_tree BYTES…
 */
#include "clock_test.h"

#include <cublas_v2.h>

static cublasHandle_t blas;
static float *mine, *sum, *came;

/* Each rank sends a chunk to the next one, 2 (N - 1) times: lesson 05. */
static void ring(size_t count) {
    const size_t n = count / (size_t)nranks;
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    const float one = 1;
    for (int step = 0; step < 2 * (nranks - 1); step++) {
        float *out = sum + n * (size_t)((rank - step + 2 * nranks) % nranks);
        size_t in = n * (size_t)((rank - step - 1 + 2 * nranks) % nranks);
        MUST(ncclGroupStart());
        MUST(ncclSend(out, n, ncclFloat32, next, comm, stream));
        MUST(ncclRecv(sum + in, n, ncclFloat32, previous, comm, stream));
        MUST(ncclGroupEnd());
        if (step < nranks - 1)
            MUST(cublasSaxpy_64(blas, (int64_t)n, &one, mine + in, 1, sum + in, 1));
    }
}

/* Half of the ranks send all they have to the other half, which add; of those, half
 * again, until rank 0 has the sum. Then the same way back. */
static void tree(size_t count) {
    const float one = 1;
    int reach = 1;
    for (; reach < nranks && rank % (2 * reach) == 0; reach *= 2)
        if (rank + reach < nranks) {
            MUST(ncclRecv(came, count, ncclFloat32, rank + reach, comm, stream));
            MUST(cublasSaxpy_64(blas, (int64_t)count, &one, came, 1, sum, 1));
        }
    if (rank > 0) {
        MUST(ncclSend(sum, count, ncclFloat32, rank - reach, comm, stream));
        MUST(ncclRecv(sum, count, ncclFloat32, rank - reach, comm, stream));
    }
    for (reach /= 2; reach > 0; reach /= 2)
        if (rank + reach < nranks)
            MUST(ncclSend(sum, count, ncclFloat32, rank + reach, comm, stream));
}

static void nccl(size_t count) {
    MUST(ncclAllReduce(mine, sum, count, ncclFloat32, ncclSum, comm, stream));
}

/* In µs; on every rank every element must be the sum of all ranks' ones. */
static double timed(void (*all_reduce)(size_t), size_t count, float *host) {
    MUST(cudaMemcpy(mine, host, count * sizeof(float), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(sum, host, count * sizeof(float), cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime();
    all_reduce(count);
    MUST(cudaStreamSynchronize(stream));
    seconds += MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MUST(cudaMemcpy(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        MUST(host[i] != (float)nranks);
        host[i] = 1;
    }
    return seconds * 1e6;
}

int main(int argc, char **argv) {
    open_all(&argc, &argv);
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    if (rank == 0)
        printf("%10s %10s %10s %14s\n", "bytes", "ring, us", "tree, us", "ncclAllReduce");
    for (int i = 1; i < argc; i++) {
        const size_t n = (size_t)nranks * sizeof(float);
        const size_t bytes = strtoull(argv[i], NULL, 10) / n * n, count = bytes / 4;
        float *host = malloc(bytes);
        for (size_t e = 0; e < count; e++)
            host[e] = 1;
        mine = allocate(bytes), sum = allocate(bytes), came = allocate(bytes);
        const double r = timed(ring, count, host), t = timed(tree, count, host);
        const double a = timed(nccl, count, host);
        if (rank == 0)
            printf("%10zu %10.1f %10.1f %14.1f\n", bytes, r, t, a);
        MUST(cudaFree(came));
        MUST(cudaFree(sum));
        MUST(cudaFree(mine));
        free(host);
    }
    MUST(cublasDestroy(blas));
    close_all();
    return 0;
}
