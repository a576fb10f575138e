/*
 * Experts: tokens travel to the rank of their expert and back. No rank knows beforehand
 * how many will come.
 *
 *     mpirun -np 4 ./experts [--load LOAD] [--capacity C] [--time] [--layers L] … [-h]
 *
 * Beside it, places.h sorts this rank's tokens, report.h has the options and the output,
 * and reference.h the same training in one process.
 */
#include "clock.h"
#include "network.h"
#include "places.h"
#include "reference.h"
#include "report.h"

struct training {
    struct network n;      // activation[l]: this rank's tokens before layer l
    struct network expert; // its weights; activation[l]: the tokens that visit it
    struct load load;
    size_t rank, nranks, share, capacity;
    // For each layer and rank, how many tokens go there, and how many come from there.
    uint64_t *leave[NETWORK_LAYERS], *come[NETWORK_LAYERS];
    size_t *place[NETWORK_LAYERS]; // of each token, among those that leave
    float *leaving;                // this rank's tokens, sorted by expert
    uint64_t *counts;              // on the GPU: a layer's leave, then its come
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm;
    size_t sent, ndropped; // bytes and tokens, in all steps so far
};

/* Gives each token that leaves a place among those for its expert. */
static void sort_tokens(struct training *t, size_t step, size_t l) {
    const size_t first = step * t->n.batch + t->rank * t->share;
    t->ndropped += give_places(&t->load, step, l, first, t->share, t->capacity,
                               t->leave[l], t->place[l]);
    if (t->capacity) // all blocks have one size
        memcpy(t->come[l], t->leave[l], t->nranks * sizeof *t->come[l]);
}

/* Tells each rank how many tokens it will get: an all-to-all of one number. The host has
 * to wait for the result, because it passes the counts to ncclRecv. */
static void exchange_counts(struct training *t, size_t l) {
    const size_t bytes = t->nranks * sizeof(uint64_t);
    uint64_t *leave = t->counts, *come = leave + t->nranks;
    CHECK_CUDA(
        cudaMemcpyAsync(leave, t->leave[l], bytes, cudaMemcpyHostToDevice, t->stream));
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < (int)t->nranks; peer++) {
        CHECK_NCCL(ncclSend(leave + peer, 1, ncclUint64, peer, t->comm, t->stream));
        CHECK_NCCL(ncclRecv(come + peer, 1, ncclUint64, peer, t->comm, t->stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    CHECK_CUDA(
        cudaMemcpyAsync(t->come[l], come, bytes, cudaMemcpyDeviceToHost, t->stream));
    CHECK_CUDA(cudaStreamSynchronize(t->stream));
}

/* An all-to-all of blocks of different sizes: out[peer] tokens go to a rank, in[peer]
 * come from it. out[peer] here is in[rank] there. Returns how many come altogether. */
static size_t exchange(struct training *t, const float *from, const uint64_t *out,
                       float *to, const uint64_t *in) {
    const size_t w = t->n.width;
    size_t coming = 0;
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < (int)t->nranks; peer++) {
        if (out[peer] > 0) // if it is 0, the peer knows that, too
            CHECK_NCCL(
                ncclSend(from, out[peer] * w, ncclFloat, peer, t->comm, t->stream));
        if (in[peer] > 0)
            CHECK_NCCL(ncclRecv(to, in[peer] * w, ncclFloat, peer, t->comm, t->stream));
        from += out[peer] * w;
        to += in[peer] * w;
        coming += in[peer];
        t->sent += out[peer] * w * sizeof(float);
    }
    CHECK_NCCL(ncclGroupEnd());
    return coming;
}

/* The tokens go to their experts and come back, each to where it was before. Every token
 * that came goes back, so on the way back the two lists of counts change places. */
static void forward(struct training *t, size_t step, size_t l) {
    const size_t w = t->n.width;
    float *x = t->expert.activation[l], *y = t->expert.activation[l + 1];
    sort_tokens(t, step, l);
    if (!t->capacity)
        exchange_counts(t, l);
    to_places(t->place[l], t->share, t->n.activation[l], w * sizeof(float), t->leaving,
              t->nranks * t->capacity, t->stream);
    const size_t coming = exchange(t, t->leaving, t->leave[l], x, t->come[l]);
    network_forward(t->blas, w, w, coming, t->expert.weight[l], x, y);
    exchange(t, y, t->come[l], t->leaving, t->leave[l]);
    from_places(t->place[l], t->share, t->n.activation[l + 1], w * sizeof(float),
                t->leaving, t->n.activation[l], t->stream);
}

/* The gradients travel as the tokens did, so the counts are known. All tokens of the
 * expert are on this rank, so the gradient of its weights is complete: nothing to
 * all-reduce. */
static void backward(struct training *t, size_t l) {
    const size_t w = t->n.width;
    float *x = t->expert.activation[l], *dy = t->expert.activation[l + 1];
    float *gradient = t->expert.gradient[l];
    to_places(t->place[l], t->share, t->n.activation[l + 1], w * sizeof(float),
              t->leaving, t->nranks * t->capacity, t->stream);
    const size_t coming = exchange(t, t->leaving, t->leave[l], dy, t->come[l]);
    if (coming == 0)
        CHECK_CUDA(cudaMemsetAsync(gradient, 0, w * w * sizeof(float), t->stream));
    else
        network_gradient(t->blas, w, w, coming, x, dy, false, gradient);
    if (l == 0)
        return;
    network_backward(t->blas, w, w, coming, t->expert.weight[l], dy, x);
    exchange(t, x, t->come[l], t->leaving, t->leave[l]);
    from_places(t->place[l], t->share, t->n.activation[l], w * sizeof(float), t->leaving,
                t->n.activation[l + 1], t->stream);
}

static void allocate(struct training *t) {
    // Room for all tokens of the batch, because all may choose one expert, or for nranks
    // blocks of the capacity, if that is more.
    const size_t most = t->nranks * t->capacity;
    const size_t room = t->n.batch > most ? t->n.batch : most;
    const size_t token = t->n.width * sizeof(float), bytes = t->nranks * sizeof(uint64_t);
    t->expert = t->n;
    network_malloc(&t->expert, room);
    network_malloc_samples(&t->n, t->share);
    CHECK_CUDA(cudaMalloc((void **)&t->leaving, room * token));
    CHECK_CUDA(cudaMalloc((void **)&t->counts, 2 * bytes));
    for (size_t l = 0; l < t->n.layers; l++) {
        uint64_t *leave, *come; // pinned: the host does not wait for copies of it
        CHECK_CUDA(cudaMallocHost((void **)&leave, bytes));
        CHECK_CUDA(cudaMallocHost((void **)&come, bytes));
        t->leave[l] = leave;
        t->come[l] = come;
        t->place[l] = lesson_malloc(t->share * sizeof(size_t));
    }
}

/* Times how long a layer's tokens take there and back, with an exchange of counts first
 * and with padded blocks of equal size. They take turns, so that a disturbance on the
 * machine affects both alike. */
static void measure(struct training *t) {
    enum { TRIPS = 10 };
    struct stopwatch watches[2] = {{0}};
    float *visiting = t->expert.activation[0];
    const size_t asked = t->capacity;
    size_t capacity = asked;
    t->capacity = 0;
    sort_tokens(t, 0, 0);
    if (capacity == 0) // large enough that no token is dropped
        capacity = report_largest(t->leave[0], t->nranks);
    for (int w = 0; !stopwatch_settled(&watches[1]); w = !w) {
        t->capacity = w == 0 ? 0 : capacity;
        sort_tokens(t, 0, 0);
        stopwatch_start(&watches[w]);
        for (int i = 0; i < TRIPS; i++) {
            if (w == 0)
                exchange_counts(t, 0);
            exchange(t, t->leaving, t->leave[0], visiting, t->come[0]);
            exchange(t, visiting, t->come[0], t->leaving, t->leave[0]);
        }
        CHECK_CUDA(cudaStreamSynchronize(t->stream));
        stopwatch_stop(&watches[w], TRIPS);
    }
    t->capacity = asked;
    report_times(&t->n, t->nranks, capacity, watches[0].seconds, watches[1].seconds);
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct training t = {.rank = rank, .nranks = nranks};
    struct network *n = &t.n;
    t.load.nexperts = nranks; // one on each rank
    bool timed = false;
    report_options(argc, argv, n, &t.load, &t.capacity, &timed);

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
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&t.blas));
    CHECK_CUBLAS(cublasSetStream(t.blas, t.stream));

    t.share = n->batch / nranks;
    allocate(&t);
    report_first(n, rank, t.expert.weight[0], t.stream);
    const size_t outputs = t.share * n->width * sizeof(float);
    float *output = lesson_malloc(outputs);
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + rank * t.share, t.share, t.stream);
        for (size_t l = 0; l < n->layers; l++)
            forward(&t, step, l);
        if (step + 1 == n->steps) // before the loss replaces it by the gradient
            CHECK_CUDA(cudaMemcpyAsync(output, n->activation[n->layers], outputs,
                                       cudaMemcpyDeviceToHost, t.stream));
        network_loss(t.blas, n->width, t.share, n->batch, n->activation[n->layers],
                     n->wanted, &n->distance[step]);
        for (size_t l = n->layers; l-- > 0;)
            backward(&t, l);
        network_update(t.blas, n, network_weights(n), t.expert.gradient[0],
                       t.expert.momentum[0], t.expert.weight[0]);
    }
    CHECK_CUDA(cudaStreamSynchronize(t.stream));
    network_print_losses(n);
    report_tokens(n, &t.load, t.capacity, t.sent, t.ndropped);
    if (timed)
        measure(&t);
    const int exit_code =
        reference_verdict(n, &t.load, t.capacity, t.expert.weight[0], output);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(output);
    for (size_t l = 0; l < n->layers; l++) {
        free(t.place[l]);
        CHECK_CUDA(cudaFreeHost(t.come[l]));
        CHECK_CUDA(cudaFreeHost(t.leave[l]));
    }
    CHECK_CUDA(cudaFree(t.counts));
    CHECK_CUDA(cudaFree(t.leaving));
    network_free_samples(n);
    network_free(&t.expert);
    CHECK_CUBLAS(cublasDestroy(t.blas));
    CHECK_CUDA(cudaStreamDestroy(t.stream));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
