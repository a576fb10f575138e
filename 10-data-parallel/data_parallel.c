/*
 * Data parallelism: every rank has the whole model and its share of the samples.
 *
 *     mpirun -np 4 ./data_parallel [--layers L] [--width W] [--batch B] [--steps S] [-h]
 */
#include "lesson.h"
#include "network.h"

/* Ends the job unless all ranks have the same weights, bit for bit: then the smallest of
 * their checksums is also the largest. */
static void check_copies(const struct network *n, const char *when, ncclComm_t comm,
                         cudaStream_t stream) {
    const size_t count = network_weights(n), size = sizeof(uint64_t);
    float *host = lesson_malloc(count * sizeof(float));
    CHECK_CUDA(cudaMemcpyAsync(host, n->weight[0], count * sizeof(float),
                               cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    uint64_t mine = network_checksum(host, count), ends[2], *sums;
    CHECK_CUDA(cudaMalloc((void **)&sums, 3 * size));
    CHECK_CUDA(cudaMemcpyAsync(sums, &mine, size, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(sums, sums + 1, 1, ncclUint64, ncclMin, comm, stream));
    CHECK_NCCL(ncclAllReduce(sums, sums + 2, 1, ncclUint64, ncclMax, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(ends, sums + 1, 2 * size, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (ends[0] != ends[1])
        lesson_fail("the ranks' copies of the weights differ %s\n"
                    "  Hint: all ranks must start from rank 0's weights, and all must"
                    " apply the same gradients.",
                    when);
    CHECK_CUDA(cudaFree(sums));
    free(host);
}

/* Every rank makes different initial weights, as a process with a random seed would. Rank
 * 0 sends its own to all: the same steps must start from the same place. `host` has room
 * for all weights. */
static void begin_alike(const struct network *n, int rank, float *host, ncclComm_t comm,
                        cudaStream_t stream) {
    const size_t count = network_weights(n);
    float *all = n->weight[0];
    network_first(n, rank, host);
    CHECK_CUDA(cudaMemcpyAsync(all, host, count * sizeof(float), cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclBroadcast(all, all, count, ncclFloat, 0, comm, stream));
    check_copies(n, "before the first step", comm, stream);
}

/* The samples go through the layers. Then the output is compared with the target. */
static void forward(const struct network *n, cublasHandle_t blas, size_t share,
                    size_t step) {
    const size_t w = n->width;
    for (size_t l = 0; l < n->layers; l++)
        network_forward(blas, w, w, share, n->weight[l], n->activation[l],
                        n->activation[l + 1]);
    network_loss(blas, w, share, share, n->activation[n->layers], n->wanted,
                 &n->distance[step]);
}

/* For each layer, the gradient of its weights, and what the previous layer needs. */
static void backward(const struct network *n, cublasHandle_t blas, size_t share) {
    const size_t w = n->width;
    for (size_t l = n->layers; l-- > 0;) {
        network_gradient(blas, w, w, share, n->activation[l], n->activation[l + 1], false,
                         n->gradient[l]);
        if (l > 0)
            network_backward(blas, w, w, share, n->weight[l], n->activation[l + 1],
                             n->activation[l]);
    }
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct network n = {0};
    network_options(argc, argv, &n, nranks, NULL);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));

    // Everything goes into one stream, cuBLAS's work too, and runs in this order.
    cudaStream_t stream;
    cublasHandle_t blas;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, stream));

    // The whole model is on every rank. Of the samples of a step, a rank takes its share.
    const size_t layer = n.width * n.width, count = network_weights(&n);
    const size_t share = n.batch / nranks;
    network_malloc(&n, share);
    float *result = lesson_malloc(count * sizeof(float));

    begin_alike(&n, rank, result, comm, stream);
    size_t reduced = 0;
    for (size_t step = 0; step < n.steps; step++) {
        // 1. Load this rank's share of the batch.
        network_load(&n, step * n.batch + rank * share, share, stream);
        // 2. Forward, from the first layer to the last.
        forward(&n, blas, share, step);
        // 3. Backward, from the last layer to the first.
        backward(&n, blas, share);
        // 4. Average the gradients: the mean over the shares is the mean over the batch.
        for (size_t l = 0; l < n.layers; l++) {
            float *g = n.gradient[l];
            CHECK_NCCL(ncclAllReduce(g, g, layer, ncclFloat, ncclAvg, comm, stream));
            reduced += layer * sizeof(float);
        }
        // 5. Update: the same weights, the same gradients, so the same weights again.
        network_update(blas, &n, count, n.gradient[0], n.momentum[0], n.weight[0]);
    } // 6. Repeat.

    CHECK_CUDA(cudaMemcpyAsync(result, n.weight[0], count * sizeof(float),
                               cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    network_print_losses(&n);
    check_copies(&n, "after the last step", comm, stream);
    if (rank == 0)
        printf("a rank all-reduces  %zu bytes a step, counted; L x W x W x 4 = %zu\n",
               reduced / n.steps, n.layers * layer * sizeof(float));

    // Rank 0 trains again, alone and with the whole batch: that is the expected result.
    float *expected = network_expected(&n);
    const int exit_code = network_verdict(&n, result, expected, count, nranks == 1);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(result);
    network_free(&n);
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
