/*
 * Overlap: gradients travel in a second stream while those of other layers are computed.
 *
 *     mpirun -np 4 ./overlap [--bucket BYTES] [--ctas N] [--time] [--layers L] … [-h]
 *
 * Beside it, report.h has the options and prints the times.
 */
#include "clock.h"
#include "network.h"
#include "report.h"

/* The gradients of some consecutive layers, all-reduced with one call. */
struct bucket {
    size_t first, count;         // its lowest layer; the number of weights in all of them
    cudaEvent_t ready, averaged; // the gradients are computed; they are averaged
};

struct training {
    struct network n;
    size_t share; // samples of a step that are this rank's
    cudaStream_t computing, sending;
    cublasHandle_t blas; // works in the stream `computing`
    ncclComm_t comm;
    struct bucket buckets[NETWORK_LAYERS]; // in the order in which they become ready
    size_t nbuckets, sent;                 // sent: bytes, in all steps so far
};

/* Queues the all-reduce of a bucket in the second stream. It starts when the first stream
 * gets to this point, and the first stream continues without waiting for it. */
static void send(struct training *t, const struct bucket *b) {
    float *gradients = t->n.gradient[b->first];
    CHECK_CUDA(cudaEventRecord(b->ready, t->computing));
    CHECK_CUDA(cudaStreamWaitEvent(t->sending, b->ready, 0));
    CHECK_NCCL(ncclAllReduce(gradients, gradients, b->count, ncclFloat, ncclAvg, t->comm,
                             t->sending));
    CHECK_CUDA(cudaEventRecord(b->averaged, t->sending));
    t->sent += b->count * sizeof(float);
}

/* Queues a step, with or without communication. The host waits for nothing. */
static void train(struct training *t, size_t step, bool communicate) {
    const struct network *n = &t->n;
    const struct bucket *b = t->buckets;
    const size_t w = n->width, share = t->share;
    for (size_t l = 0; l < n->layers; l++)
        network_forward(t->blas, w, w, share, n->weight[l], n->activation[l],
                        n->activation[l + 1]);
    network_loss(t->blas, w, share, share, n->activation[n->layers], n->wanted,
                 &n->distance[step]);
    // The last layer's gradient is ready first. It travels while the gradients of the
    // earlier layers are computed.
    for (size_t l = n->layers; l-- > 0;) {
        network_gradient(t->blas, w, w, share, n->activation[l], n->activation[l + 1],
                         false, n->gradient[l]);
        if (communicate && l == b->first)
            send(t, b++);
        if (l > 0)
            network_backward(t->blas, w, w, share, n->weight[l], n->activation[l + 1],
                             n->activation[l]);
    }
    // Wait for one bucket at a time: the last one travels while the layers of the other
    // buckets are updated.
    for (b = t->buckets; b < t->buckets + t->nbuckets; b++) {
        if (communicate)
            CHECK_CUDA(cudaStreamWaitEvent(t->computing, b->averaged, 0));
        network_update(t->blas, n, b->count, n->gradient[b->first], n->momentum[b->first],
                       n->weight[b->first]);
    }
}

/* Fills buckets from the last layer to the first. A bucket that has at least `bytes` is
 * closed. */
static void make_buckets(struct training *t, size_t bytes) {
    const size_t layer = t->n.width * t->n.width;
    struct bucket *b = t->buckets;
    for (size_t l = t->n.layers; l-- > 0;) {
        b->first = l;
        b->count += layer;
        if (b->count * sizeof(float) < bytes && l > 0)
            continue;
        CHECK_CUDA(cudaEventCreateWithFlags(&b->ready, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&b->averaged, cudaEventDisableTiming));
        b++;
    }
    t->nbuckets = (size_t)(b - t->buckets);
}

/* Times the step without communication, the communication without the step, and both.
 * They take turns, so that a disturbance on the machine affects all three alike. */
static void measure(struct training *t) {
    enum { COMPUTE, REDUCE, BOTH, STEPS = 10 };
    struct stopwatch watches[3] = {{0}};
    for (int w = COMPUTE; !stopwatch_settled(&watches[BOTH]); w = (w + 1) % 3) {
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++) {
            if (w != REDUCE)
                train(t, 0, w == BOTH);
            for (size_t b = 0; w == REDUCE && b < t->nbuckets; b++)
                send(t, &t->buckets[b]);
        }
        CHECK_CUDA(cudaStreamSynchronize(t->computing));
        CHECK_CUDA(cudaStreamSynchronize(t->sending));
        stopwatch_stop(&watches[w], STEPS);
    }
    report_times(watches[COMPUTE].seconds, watches[REDUCE].seconds,
                 watches[BOTH].seconds);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices, high;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct training t = {0};
    const struct asked asked = report_options(argc, argv, &t.n);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    // The multiprocessors that NCCL's kernel occupies are lost to cuBLAS while it runs.
    if (asked.ctas > 0)
        config.maxCTAs = (int)asked.ctas;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRankConfig(&t.comm, nranks, id, rank, &config));

    // When both streams have work, blocks of the stream with the higher priority go
    // first. Otherwise an all-reduce would wait until all blocks of a product have
    // started.
    CHECK_CUDA(cudaDeviceGetStreamPriorityRange(NULL, &high));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.computing, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithPriority(&t.sending, cudaStreamNonBlocking, high));
    CHECK_CUBLAS(cublasCreate(&t.blas));
    CHECK_CUBLAS(cublasSetStream(t.blas, t.computing));

    t.share = t.n.batch / nranks;
    const size_t weights = network_weights(&t.n);
    network_malloc(&t.n, t.share);
    make_buckets(&t, asked.bucket);
    float *result = lesson_malloc(weights * sizeof(float));
    network_first(&t.n, rank, result);
    CHECK_CUDA(cudaMemcpyAsync(t.n.weight[0], result, weights * sizeof(float),
                               cudaMemcpyHostToDevice, t.computing));
    CHECK_NCCL(ncclBroadcast(t.n.weight[0], t.n.weight[0], weights, ncclFloat, 0, t.comm,
                             t.computing));

    for (size_t step = 0; step < t.n.steps; step++) {
        network_load(&t.n, step * t.n.batch + rank * t.share, t.share, t.computing);
        train(&t, step, true);
    }
    CHECK_CUDA(cudaMemcpyAsync(result, t.n.weight[0], weights * sizeof(float),
                               cudaMemcpyDeviceToHost, t.computing));
    CHECK_CUDA(cudaStreamSynchronize(t.computing));
    network_print_losses(&t.n);
    network_check_copies(result, weights, "after the last step", MPI_COMM_WORLD);
    if (rank == 0)
        printf("a rank all-reduces  %zu bytes a step, counted; L x W x W x 4 = %zu;"
               " buckets: %zu\n",
               t.sent / t.n.steps, weights * sizeof(float), t.nbuckets);
    if (asked.timed)
        measure(&t);
    float *expected = network_expected(&t.n);
    const int exit_code = network_verdict(&t.n, result, expected, weights, nranks == 1);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(result);
    for (size_t b = 0; b < t.nbuckets; b++) {
        CHECK_CUDA(cudaEventDestroy(t.buckets[b].averaged));
        CHECK_CUDA(cudaEventDestroy(t.buckets[b].ready));
    }
    network_free(&t.n);
    CHECK_CUBLAS(cublasDestroy(t.blas));
    CHECK_CUDA(cudaStreamDestroy(t.sending));
    CHECK_CUDA(cudaStreamDestroy(t.computing));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
