/*
 * Kernels: your own between NCCL's calls. A kernel fills gradients, an all-reduce adds
 * them, a kernel steps by their mean: in one stream, and in chunks over two.
 *
 *     mpirun -np 4 ./kernels [-n COUNT] [--chunks CHUNKS] [-h]
 */
#include "clock.h"

enum { THREADS = 256, MOST_CHUNKS = 64, REPEAT = 5 };

/* Element `first + i` of a gradient that nobody had to train for. */
__global__ void fill(float *gradient, size_t first, size_t count, int rank) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        gradient[i] = (float)((first + i) % 64 + rank);
}

/* A step against the mean of all ranks. */
__global__ void step(float *weight, const float *sum, size_t count, float nranks) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        weight[i] -= sum[i] / nranks;
}

/* The same in two kernels: the mean is written to memory, and read again. */
__global__ void divide(float *sum, size_t count, float nranks) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        sum[i] /= nranks;
}
__global__ void subtract(float *weight, const float *mean, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        weight[i] -= mean[i];
}

enum way { ONE_STREAM, TWO_KERNELS, CHUNKS, WAYS };

struct training {
    int rank, nranks;
    size_t count, chunks;
    float *weight, *gradient, *sum;
    ncclComm_t comm;
    cudaStream_t compute, network;
    cudaEvent_t filled[MOST_CHUNKS], summed[MOST_CHUNKS];
};

static unsigned blocks(size_t count) { // so many that each element has a thread
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* One stream is order enough: each starts when the one before it is done. */
static void in_one_stream(const struct training *t, enum way way) {
    const float nranks = (float)t->nranks;
    fill<<<blocks(t->count), THREADS, 0, t->compute>>>(t->gradient, 0, t->count, t->rank);
    CHECK_CUDA(cudaGetLastError());
    CHECK_NCCL(ncclAllReduce(t->gradient, t->sum, t->count, ncclFloat32, ncclSum, t->comm,
                             t->compute));
    if (way == TWO_KERNELS) {
        divide<<<blocks(t->count), THREADS, 0, t->compute>>>(t->sum, t->count, nranks);
        subtract<<<blocks(t->count), THREADS, 0, t->compute>>>(t->weight, t->sum,
                                                               t->count);
    } else {
        step<<<blocks(t->count), THREADS, 0, t->compute>>>(t->weight, t->sum, t->count,
                                                           nranks);
    }
    CHECK_CUDA(cudaGetLastError());
}

/* While chunk k is added up on `network`, chunk k + 1 is filled on `compute`. */
static void in_chunks(const struct training *t) {
    const size_t most = (t->count + t->chunks - 1) / t->chunks;
    for (size_t k = 0, first = 0; first < t->count; k++, first += most) {
        const size_t count = first + most < t->count ? most : t->count - first;
        fill<<<blocks(count), THREADS, 0, t->compute>>>(t->gradient + first, first, count,
                                                        t->rank);
        CHECK_CUDA(cudaGetLastError());
        CHECK_CUDA(cudaEventRecord(t->filled[k], t->compute));
        CHECK_CUDA(cudaStreamWaitEvent(t->network, t->filled[k], 0));
        CHECK_NCCL(ncclAllReduce(t->gradient + first, t->sum + first, count, ncclFloat32,
                                 ncclSum, t->comm, t->network));
        CHECK_CUDA(cudaEventRecord(t->summed[k], t->network));
    }
    for (size_t k = 0, first = 0; first < t->count; k++, first += most) {
        const size_t count = first + most < t->count ? most : t->count - first;
        CHECK_CUDA(cudaStreamWaitEvent(t->compute, t->summed[k], 0));
        step<<<blocks(count), THREADS, 0, t->compute>>>(t->weight + first, t->sum + first,
                                                        count, (float)t->nranks);
        CHECK_CUDA(cudaGetLastError());
    }
}

static void queue(const struct training *t, enum way way) {
    if (way == CHUNKS)
        in_chunks(t);
    else
        in_one_stream(t, way);
}

/* Every weight begins at 0, so after one step it is the negative mean. */
static void check(const struct training *t, enum way way, float *host) {
    const size_t bytes = t->count * sizeof(float);
    CHECK_CUDA(cudaMemsetAsync(t->weight, 0, bytes, t->compute));
    queue(t, way);
    CHECK_CUDA(
        cudaMemcpyAsync(host, t->weight, bytes, cudaMemcpyDeviceToHost, t->compute));
    CHECK_CUDA(cudaStreamSynchronize(t->compute));
    for (size_t i = 0; i < t->count; i++)
        lesson_expect(i, host[i], -(double)(i % 64) - (t->nranks - 1) / 2.0);
    if (way == ONE_STREAM)
        lesson_table("Weights after one step:", host, t->count, ncclFloat32);
}

static double seconds_of(const struct training *t, enum way way) {
    struct stopwatch watch = {};
    while (!stopwatch_settled(&watch)) {
        stopwatch_start(&watch);
        for (int i = 0; i < REPEAT; i++)
            queue(t, way);
        CHECK_CUDA(cudaStreamSynchronize(t->compute));
        stopwatch_stop(&watch, REPEAT);
    }
    return watch.seconds;
}

int main(int argc, char **argv) {
    struct training t = {};
    struct lesson_option options[] = {
        {"-n", "COUNT", "weights"}, {"--chunks", "CHUNKS", "of the last way"}, {}};
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &t.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &t.nranks));
    options[0].number = &t.count, options[0].least = 1;
    options[0].usual = LESSON_CPU_BUILD ? 1 << 18 : 1 << 26;
    options[1].number = &t.chunks, options[1].least = 1;
    options[1].most = MOST_CHUNKS, options[1].usual = 4;
    lesson_options(argc, argv, options);
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(t.rank % ndevices));
    lesson_one_gpu_per_rank();

    ncclUniqueId id;
    if (t.rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&t.comm, t.nranks, id, t.rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.compute, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.network, cudaStreamNonBlocking));
    for (int k = 0; k < MOST_CHUNKS; k++) {
        CHECK_CUDA(cudaEventCreateWithFlags(&t.filled[k], cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&t.summed[k], cudaEventDisableTiming));
    }
    const size_t bytes = t.count * sizeof(float);
    lesson_need_memory(3 * bytes);
    float *host = (float *)lesson_malloc(bytes);
    CHECK_CUDA(cudaMalloc((void **)&t.weight, bytes));
    CHECK_CUDA(cudaMalloc((void **)&t.gradient, bytes));
    CHECK_CUDA(cudaMalloc((void **)&t.sum, bytes));

    // More threads in a block than a GPU has room for. The launch returns nothing: ask.
    fill<<<1, 2048, 0, t.compute>>>(t.gradient, 0, t.count, t.rank);
    cudaError_t error = cudaGetLastError();
    if (t.rank == 0)
        printf("2048 threads in a block: %s\n", cudaGetErrorString(error));

    for (int way = 0; way < WAYS; way++)
        check(&t, (enum way)way, host);
    lesson_say_whose_times();
    static const char *const names[WAYS] = {"one stream", "one kernel more",
                                            "chunks, two streams"};
    for (int way = 0; way < WAYS; way++) {
        double us = seconds_of(&t, (enum way)way) * 1e6;
        if (t.rank == 0)
            printf("%-20s %10.1f us\n", names[way], us);
    }

    free(host);
    CHECK_CUDA(cudaFree(t.sum));
    CHECK_CUDA(cudaFree(t.gradient));
    CHECK_CUDA(cudaFree(t.weight));
    for (int k = 0; k < MOST_CHUNKS; k++) {
        CHECK_CUDA(cudaEventDestroy(t.filled[k]));
        CHECK_CUDA(cudaEventDestroy(t.summed[k]));
    }
    CHECK_CUDA(cudaStreamDestroy(t.network));
    CHECK_CUDA(cudaStreamDestroy(t.compute));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    int exit_code = lesson_verdict("element");
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
