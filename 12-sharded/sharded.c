/*
 * Sharded: each rank keeps one N-th of the weights, the gradients and the momentum.
 *
 *     mpirun -np 4 ./sharded [--stage STAGE] [--time] [--layers L] [--width W] … [-h]
 *
 * Beside it, report.h has the options, the initial weights, and the output.
 */
#include "clock.h"
#include "network.h"
#include "report.h"

// Events. GATHERED and SCATTERED are two each, one for each place of a whole layer.
enum { HANDED, GATHERED, SCATTERED = GATHERED + 2, EVENTS = SCATTERED + 2 };

struct training {
    struct network n; // weight, gradient, momentum: this rank's shard of each layer
    size_t stage;     // 1 divides the momentum, 2 also the gradients, 3 also the weights
    size_t rank, nranks, share; // share: samples of a step that are this rank's
    size_t shard, layer; // numbers in a shard, and in N shards: a layer and its padding
    float *weights, *gradients; // whole layers to compute with: all of them, or two
    cudaStream_t computing, sending;
    cudaEvent_t event[EVENTS];
    cublasHandle_t blas;
    ncclComm_t comm;
    bool communicate; // false for the times without communication
    size_t sent;      // bytes, in all steps so far
    float *memory[5]; // what `zeros` has allocated, `kept` bytes in all
    size_t nmemory, kept;
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

/* Whatever is queued for sending after this waits for all that is queued for computing so
 * far. */
static void hand_over(struct training *t) {
    CHECK_CUDA(cudaEventRecord(t->event[HANDED], t->computing));
    CHECK_CUDA(cudaStreamWaitEvent(t->sending, t->event[HANDED], 0));
}

/* Queues the all-gather of the weights for a use. Below stage 3 whole layers stay in
 * memory, so one all-gather per step fetches what other ranks have updated. */
static void gather(struct training *t, size_t use) {
    if (!t->communicate || use >= (t->stage < 3 ? 1 : 2) * t->n.layers)
        return;
    hand_over(t); // so the place is free: use - 2, which had it before, is computed
    CHECK_NCCL(ncclAllGather(t->n.weight[layer_of(t, use)], weights(t, use), t->shard,
                             ncclFloat, t->comm, t->sending));
    t->sent += (t->nranks - 1) * t->shard * sizeof(float);
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
    t->sent += (t->nranks - 1) * t->shard * sizeof(float);
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
    // Layer 0's gradient is the last to leave. A rank updates only the shards it keeps.
    wait_for(t, SCATTERED);
    for (size_t l = 0; l < n->layers; l++)
        network_update(t->blas, n, t->shard, n->gradient[l],
                       n->momentum[0] + l * t->shard, n->weight[l]);
}

static float *zeros(struct training *t, size_t count) {
    float **memory = &t->memory[t->nmemory++];
    CHECK_CUDA(cudaMalloc((void **)memory, count * sizeof(float)));
    CHECK_CUDA(cudaMemset(*memory, 0, count * sizeof(float)));
    t->kept += count * sizeof(float);
    return *memory;
}

/* Memory for weights or gradients. Divided: two whole layers, and this rank's shards of
 * all layers. Not divided: all whole layers, and the shards are inside them. */
static void allocate(struct training *t, bool divided, float **whole, float **shard) {
    *whole = zeros(t, (divided ? 2 : t->n.layers) * t->layer);
    shard[0] = divided ? zeros(t, t->n.layers * t->shard) : *whole + t->rank * t->shard;
    for (size_t l = 1; l < t->n.layers; l++)
        shard[l] = shard[l - 1] + (divided ? t->shard : t->layer);
}

/* Gathers the whole model into host memory, layer by layer, as you would to save it. */
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

/* Times a step without communication and with it. They take turns, so that a disturbance
 * on the machine affects both alike. */
static void measure(struct training *t) {
    enum { STEPS = 10 };
    struct stopwatch watches[2] = {{0}};
    for (int w = 0; !stopwatch_settled(&watches[1]); w = !w) {
        t->communicate = w == 1;
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++)
            train(t, 0);
        CHECK_CUDA(cudaStreamSynchronize(t->computing));
        stopwatch_stop(&watches[w], STEPS);
    }
    report_times(watches[0].seconds, watches[1].seconds);
}

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

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&t.comm, nranks, id, rank));

    // Sending has the higher priority: it gets multiprocessors that become free first.
    CHECK_CUDA(cudaDeviceGetStreamPriorityRange(NULL, &high));
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.computing, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithPriority(&t.sending, cudaStreamNonBlocking, high));
    CHECK_CUBLAS(cublasCreate(&t.blas));
    CHECK_CUBLAS(cublasSetStream(t.blas, t.computing));
    for (int i = 0; i < EVENTS; i++)
        CHECK_CUDA(cudaEventCreateWithFlags(&t.event[i], cudaEventDisableTiming));

    // All shards must have the same length, so it is rounded up.
    t.share = n->batch / nranks;
    t.shard = (n->width * n->width + nranks - 1) / nranks;
    t.layer = nranks * t.shard;
    report_need(n, t.stage, t.layer, t.shard, t.share);
    allocate(&t, t.stage > 2, &t.weights, n->weight);
    allocate(&t, t.stage > 1, &t.gradients, n->gradient);
    n->momentum[0] = zeros(&t, n->layers * t.shard); // always only this rank's shards
    network_malloc_samples(n, t.share); // also waits for the cudaMemset in `zeros`

    report_first(n, rank, t.shard, t.layer, t.computing);
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + rank * t.share, t.share, t.computing);
        train(&t, step);
    }
    const size_t count = network_weights(n), sent = t.sent / n->steps;
    float *host = lesson_malloc(count * sizeof(float));
    gather_model(&t, host);
    network_print_losses(n);
    network_check_copies(host, count, "after the last step", MPI_COMM_WORLD);
    report_kept(n->layers * t.layer, n->layers * t.shard, t.stage, t.kept,
                report_in_use(t.stage, t.layer));
    report_sent(sent, t.stage, n->layers * (t.nranks - 1) * t.shard * sizeof(float));
    if (timed)
        measure(&t);
    float *expected = network_expected(n);
    const int exit_code = network_verdict(n, host, expected, count, nranks == 1);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(host);
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
