/*
 * Device API: a kernel that communicates. It adds up the buffers of all ranks by loads
 * from their memory and stores into it, without a call of NCCL on the host.
 *
 *     mpirun -np 4 ./device_api [-n COUNT] [--time] [-h]
 */
#include "clock.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 512, MOST_BLOCKS = 16, REPEAT = 10, MOST_TIMED = 1 << 18 };

/* Every rank runs it at the same time. Each adds up its share of the elements, and stores
 * the sums at all ranks. */
__global__ void all_reduce(ncclWindow_t from, ncclWindow_t to, size_t count,
                           ncclDevComm dev) {
    const ncclTeam team = ncclTeamLsa(dev);
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), dev, ncclTeamTagLsa(),
                                               blockIdx.x);
    // From here on all ranks' values are in `from`.
    barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);

    // The threads of all ranks together take the elements in turn.
    const size_t threads = (size_t)blockDim.x * gridDim.x * team.nRanks;
    size_t i = threadIdx.x + (size_t)blockDim.x * (blockIdx.x * team.nRanks + team.rank);
    for (; i < count; i += threads) {
        float sum = 0;
        for (int peer = 0; peer < team.nRanks; peer++)
            sum += ((const float *)ncclGetLsaPointer(from, 0, peer))[i];
        for (int peer = 0; peer < team.nRanks; peer++)
            ((float *)ncclGetLsaPointer(to, 0, peer))[i] = sum;
    }

    // From here on all sums are in `to`, and nobody reads `from` any more.
    barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}

struct buffers {
    int rank, nranks;
    ncclComm_t comm;
    cudaStream_t stream;
    ncclDevComm dev;
    float *from, *to; // this rank's parts of the two windows
    ncclWindow_t from_window, to_window;
};

/* All ranks launch as many blocks, since block b waits for block b of the others. */
static void launch(const struct buffers *b, size_t count) {
    const size_t share = (count + b->nranks - 1) / b->nranks;
    const size_t blocks = (share + THREADS - 1) / THREADS;
    all_reduce<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
                 b->stream>>>(b->from_window, b->to_window, count, b->dev);
    CHECK_CUDA(cudaGetLastError());
}

static void call_nccl(const struct buffers *b, size_t count) {
    CHECK_NCCL(
        ncclAllReduce(b->from, b->to, count, ncclFloat32, ncclSum, b->comm, b->stream));
}

static double microseconds_of(const struct buffers *b, size_t count,
                              void (*queue)(const struct buffers *, size_t)) {
    struct stopwatch watch = {};
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < REPEAT; i++)
            queue(b, count);
        CHECK_CUDA(cudaStreamSynchronize(b->stream));
        stopwatch_stop(&watch, REPEAT);
    }
    return watch.seconds * 1e6;
}

/* Not every machine can: the same on all ranks, so one of them says so. */
static void need(const struct buffers *b, bool can, const char *what) {
    if (!can && b->rank == 0)
        fprintf(stderr, "device_api needs GPUs that reach one another's memory: %s\n",
                what);
    if (!can)
        lesson_leave(1);
}

int main(int argc, char **argv) {
    struct buffers b = {};
    size_t count;
    bool timed = false;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements of each rank", NULL, &count, 4, 1},
        {"--time", NULL, "also time it beside ncclAllReduce", &timed},
        {}};
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &b.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &b.nranks));
    lesson_options(argc, argv, options);
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(b.rank % ndevices));
    lesson_one_gpu_per_rank();

    ncclUniqueId id;
    if (b.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&b.comm, b.nranks, id, b.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));

    // What kernels need of the communicator: here a barrier for each block.
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = MOST_BLOCKS;
    const ncclResult_t result = ncclDevCommCreate(b.comm, &wanted, &b.dev);
    need(&b, result == ncclSuccess, ncclGetLastError(b.comm));
    need(&b, b.dev.lsaSize == b.nranks, "not all ranks are in one LSA team");

    // Windows: memory of NCCL's that all ranks register together.
    const size_t bytes = (count < MOST_TIMED ? MOST_TIMED : count) * sizeof(float);
    lesson_need_memory(2 * bytes);
    float *host = (float *)lesson_malloc(bytes);
    CHECK_NCCL(ncclMemAlloc((void **)&b.from, bytes));
    CHECK_NCCL(ncclMemAlloc((void **)&b.to, bytes));
    CHECK_NCCL(ncclCommWindowRegister(b.comm, b.from, bytes, &b.from_window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    CHECK_NCCL(ncclCommWindowRegister(b.comm, b.to, bytes, &b.to_window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        host[i] = (float)(i % 1000 + (size_t)b.rank);
    CHECK_CUDA(cudaMemcpyAsync(b.from, host, bytes, cudaMemcpyHostToDevice, b.stream));
    lesson_table("Before the kernel:", host, count, ncclFloat32);

    launch(&b, count);
    CHECK_CUDA(cudaMemcpyAsync(host, b.to, count * sizeof(float), cudaMemcpyDeviceToHost,
                               b.stream));
    CHECK_CUDA(cudaStreamSynchronize(b.stream));
    lesson_table("After the kernel:", host, count, ncclFloat32);
    for (size_t i = 0; i < count; i++)
        lesson_expect(i, (double)host[i],
                      b.nranks * ((double)(i % 1000) + (b.nranks - 1) / 2.0));

    if (timed && b.rank == 0)
        printf("%10s %14s %17s\n", "bytes", "this kernel", "ncclAllReduce");
    static const size_t counts[] = {2, 64, 2048, 16384, 65536, MOST_TIMED, 0};
    for (const size_t *n = counts; timed && *n; n++) {
        const double kernel = microseconds_of(&b, *n, launch);
        const double nccl = microseconds_of(&b, *n, call_nccl);
        if (b.rank == 0)
            printf("%10zu %11.1f us %14.1f us\n", *n * sizeof(float), kernel, nccl);
    }

    // No kernel uses it any more.
    CHECK_NCCL(ncclDevCommDestroy(b.comm, &b.dev));
    CHECK_NCCL(ncclCommWindowDeregister(b.comm, b.to_window));
    CHECK_NCCL(ncclCommWindowDeregister(b.comm, b.from_window));
    CHECK_NCCL(ncclMemFree(b.to));
    CHECK_NCCL(ncclMemFree(b.from));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(b.stream));
    CHECK_NCCL(ncclCommDestroy(b.comm));
    const int exit_code = lesson_verdict("element");
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
