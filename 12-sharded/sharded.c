/*
 * Sharded: each rank keeps one N-th of the weights, the gradients and the momentum.
 *
 *     mpirun -np 4 ./sharded [--stage STAGE] [--time] [--layers L] [--width W] … [-h]
 *
 * Beside it, report.h has the options and the output, timing.h what --time does.
 */
#include "network.h"
#include "report.h"

// The events. GATHERED and SCATTERED are two each, one for each of the two places that
// whole layers have.
enum { HANDED, GATHERED, SCATTERED = GATHERED + 2, EVENTS = SCATTERED + 2 };

struct training {
    struct network n; // weight, gradient, momentum: this rank's shard of each layer
    size_t stage;     // 1 divides the momentum, 2 also the gradients, 3 also the weights
    size_t rank, nranks, share; // share: samples of a step that are this rank's
    size_t shard, layer;        // numbers in a shard; in N shards, a layer and padding
    float *weights, *gradients; // whole layers to compute with: all of them, or two
    float *memory[5];           // everything allocated for weights, gradients, momentum
    cudaStream_t computing, sending;
    cublasHandle_t blas;
    ncclComm_t comm;
    cudaEvent_t event[EVENTS];
    bool communicate;
    size_t nmemory, sent; // sent: bytes, in all steps so far
};

/* A step uses each layer twice. Uses 0 … L-1 are the forward pass, first layer first;
 * uses L … 2L-1 are the backward pass, last layer first. */
static size_t layer_of(const struct training *t, size_t use) {
    return use < t->n.layers ? use : 2 * t->n.layers - 1 - use;
}

/* Where the whole layer is. If the weights are divided, there are two places that take
 * turns: one is used for computing while the other is being filled. */
static float *weights(const struct training *t, size_t use) {
    return t->weights + (t->stage < 3 ? layer_of(t, use) : use % 2) * t->layer;
}

static float *gradients(const struct training *t, size_t l) {
    return t->gradients + (t->stage < 2 ? l : l % 2) * t->layer;
}

/* Whatever is queued for sending after this starts when computing gets to this point. */
static void hand_over(struct training *t) {
    CHECK_CUDA(cudaEventRecord(t->event[HANDED], t->computing));
    CHECK_CUDA(cudaStreamWaitEvent(t->sending, t->event[HANDED], 0));
    t->sent += (t->nranks - 1) * t->shard * sizeof(float);
}

/* Queues the all-gather of the weights for a use. Below stage 3 whole layers stay in
 * memory, so one all-gather per step fetches what other ranks have updated. */
static void gather(struct training *t, size_t use) {
    if (!t->communicate || use >= (t->stage < 3 ? 1 : 2) * t->n.layers)
        return;
    hand_over(t); // so the place is free: the use before the last is over
    CHECK_NCCL(ncclAllGather(t->n.weight[layer_of(t, use)], weights(t, use), t->shard,
                             ncclFloat, t->comm, t->sending));
    CHECK_CUDA(cudaEventRecord(t->event[GATHERED + use % 2], t->sending));
}

/* Queues the reduce-scatter of a layer's gradient. Each rank gets its shard of the mean,
 * which is all that its update needs. */
static void scatter(struct training *t, size_t l) {
    if (!t->communicate)
        return;
    hand_over(t); // so the gradient is computed
    CHECK_NCCL(ncclReduceScatter(gradients(t, l), t->n.gradient[l], t->shard, ncclFloat,
                                 ncclAvg, t->comm, t->sending));
    CHECK_CUDA(cudaEventRecord(t->event[SCATTERED + l % 2], t->sending));
}

static void wait_for(struct training *t, int event) {
    CHECK_CUDA(cudaStreamWaitEvent(t->computing, t->event[event], 0));
}

/* Queues a step. The host waits for nothing. */
static void train(struct training *t, size_t step) {
    const struct network *n = &t->n;
    const size_t w = n->width, share = t->share;
    size_t use = 0;
    gather(t, 0);
    for (size_t l = 0; l < n->layers; l++, use++) {
        gather(t, use + 1); // travels while this layer computes
        wait_for(t, GATHERED + use % 2);
        network_forward(t->blas, w, w, share, weights(t, use), n->activation[l],
                        n->activation[l + 1]);
    }
    network_loss(t->blas, w, share, share, n->activation[n->layers], n->wanted,
                 &n->distance[step]);
    for (size_t l = n->layers; l-- > 0; use++) {
        gather(t, use + 1);
        wait_for(t, SCATTERED + l % 2); // the gradient that was in this place has left
        network_gradient(t->blas, w, w, share, n->activation[l], n->activation[l + 1],
                         false, gradients(t, l));
        scatter(t, l);
        wait_for(t, GATHERED + use % 2);
        if (l > 0)
            network_backward(t->blas, w, w, share, weights(t, use), n->activation[l + 1],
                             n->activation[l]);
    }
    // Layer 0's gradient is the last to leave. Each rank updates only the shards it
    // keeps.
    wait_for(t, SCATTERED);
    for (size_t l = 0; l < n->layers; l++)
        network_update(t->blas, n, t->shard, n->gradient[l], n->momentum[l],
                       n->weight[l]);
}

/* Bytes for whole layers that are computed with: two for each thing that is divided. */
static size_t room_in_use(const struct training *t) {
    return (t->stage - 1) * 2 * t->layer * sizeof(float);
}

static float *zeros(struct training *t, size_t count) {
    float **memory = &t->memory[t->nmemory++];
    CHECK_CUDA(cudaMalloc((void **)memory, count * sizeof(float)));
    CHECK_CUDA(cudaMemset(*memory, 0, count * sizeof(float)));
    return *memory;
}

/* Memory for weights or gradients. Divided: two whole layers, and this rank's shards of
 * all layers. Not divided: all whole layers, and the shards are inside them. */
static void make_room(struct training *t, bool divided, float **whole, float **shard) {
    *whole = zeros(t, (divided ? 2 : t->n.layers) * t->layer);
    shard[0] = divided ? zeros(t, t->n.layers * t->shard) : *whole + t->rank * t->shard;
    for (size_t l = 1; l < t->n.layers; l++)
        shard[l] = shard[0] + l * (divided ? t->shard : t->layer);
}

/* Allocates all memory of the GPU that this rank needs. Returns the bytes for weights,
 * gradients and momentum, as measured. */
static size_t allocate(struct training *t) {
    struct network *n = &t->n;
    size_t before, after, total;
    network_need(report_bytes(t->stage, n->layers * t->layer, n->layers * t->shard) +
                 room_in_use(t) + network_samples_bytes(n, t->share));
    CHECK_CUDA(cudaMemGetInfo(&before, &total));
    make_room(t, t->stage > 2, &t->weights, n->weight);
    make_room(t, t->stage > 1, &t->gradients, n->gradient);
    n->momentum[0] = zeros(t, n->layers * t->shard);
    for (size_t l = 1; l < n->layers; l++)
        n->momentum[l] = n->momentum[0] + l * t->shard;
    CHECK_CUDA(cudaMemGetInfo(&after, &total));
    network_malloc_samples(n, t->share); // also waits for the cudaMemset above
    return before - after;
}

/* All ranks make the same initial weights (the seed is the same), and each keeps its
 * shards. The padding at the end of a layer is never used in a product. `host` has room
 * for all weights and one layer. */
static void keep_shards(struct training *t, float *host) {
    const struct network *n = &t->n;
    const size_t one = n->width * n->width, count = network_weights(n);
    memset(host + count, 0, t->layer * sizeof(float));
    network_first(n, 0, host);
    for (size_t l = 0; l < n->layers; l++)
        CHECK_CUDA(cudaMemcpyAsync(n->weight[l], host + l * one + t->rank * t->shard,
                                   t->shard * sizeof(float), cudaMemcpyHostToDevice,
                                   t->computing));
}

/* Gathers the whole model into host memory, layer by layer, as one does to save it. */
static void gather_model(struct training *t, float *host) {
    const size_t one = t->n.width * t->n.width;
    for (size_t l = 0; l < t->n.layers; l++) {
        gather(t, l);
        wait_for(t, GATHERED + l % 2);
        CHECK_CUDA(cudaMemcpyAsync(host + l * one, weights(t, l), one * sizeof(float),
                                   cudaMemcpyDeviceToHost, t->computing));
    }
    CHECK_CUDA(cudaStreamSynchronize(t->computing));
}

#include "timing.h" // measure, for --time

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices, high;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct training t = {.rank = rank, .nranks = nranks, .communicate = true};
    struct network *n = &t.n;
    bool timed = false;
    report_options(argc, argv, n, &t.stage, &timed);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&t.comm, nranks, id, rank));

    // When both streams have work, the one with the higher priority gets free
    // multiprocessors first.
    CHECK_CUDA(cudaDeviceGetStreamPriorityRange(NULL, &high));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.computing, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithPriority(&t.sending, cudaStreamNonBlocking, high));
    CHECK_CUBLAS(cublasCreate(&t.blas));
    CHECK_CUBLAS(cublasSetStream(t.blas, t.computing));
    for (int i = 0; i < EVENTS; i++)
        CHECK_CUDA(cudaEventCreateWithFlags(&t.event[i], cudaEventDisableTiming));

    const size_t one = n->width * n->width, count = network_weights(n);
    t.share = n->batch / nranks;
    t.shard = (one + nranks - 1) / nranks; // rounded up: equal on all ranks
    t.layer = nranks * t.shard;
    const size_t measured = allocate(&t);
    float *result = lesson_malloc((count + t.layer) * sizeof(float));
    keep_shards(&t, result);
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + rank * t.share, t.share, t.computing);
        train(&t, step);
    }
    const size_t sent = t.sent / n->steps;

    gather_model(&t, result);
    network_print_losses(n);
    network_check_copies(result, count, "after the last step", MPI_COMM_WORLD);
    report_kept(n->layers * t.layer, n->layers * t.shard, t.stage, measured,
                room_in_use(&t));
    report_sent(sent, t.stage, n->layers * (nranks - 1) * t.shard * sizeof(float));
    if (timed)
        measure(&t);
    float *expected = network_expected(n);
    const int exit_code = network_verdict(n, result, expected, count, nranks == 1);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(result);
    network_free_samples(n);
    for (size_t i = 0; i < t.nmemory; i++)
        CHECK_CUDA(cudaFree(t.memory[i]));
    for (int i = 0; i < EVENTS; i++)
        CHECK_CUDA(cudaEventDestroy(t.event[i]));
    CHECK_CUBLAS(cublasDestroy(t.blas));
    CHECK_CUDA(cudaStreamDestroy(t.sending));
    CHECK_CUDA(cudaStreamDestroy(t.computing));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
