/*
 * Experts: tokens travel to the rank of their expert and back. No rank knows beforehand
 * how many will come.
 *
 *     mpirun -np 4 ./experts [--load LOAD] [--capacity C] [--time] [--layers L] … [-h]
 *
 * Beside it, reference.h has the options, the rule by which a token chooses its expert,
 * and the same training in one process; places.h sorts the tokens; timing.h has what
 * --time does.
 */
#include "network.h"
#include "reference.h"

/* How this rank's tokens travel in a layer. */
struct road {
    size_t *place;          // of each token, among the tokens that leave
    uint64_t *leave, *come; // how many tokens go to each rank, and come from each
    uint64_t coming;        // from all ranks together
};
static const size_t dropped = SIZE_MAX; // the place of a token that got none

struct training {
    struct network n; // the weights of this rank's expert, a matrix in each layer
    struct load load;
    size_t rank, nranks, share, capacity;
    struct road roads[NETWORK_LAYERS];
    float *leaving;                  // this rank's tokens, sorted by expert
    float *visiting[NETWORK_LAYERS]; // the tokens that have come to this rank's expert
    float *made;                     // what the expert makes of them
    uint64_t *counts;                // on the GPU: first leave, then come
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm;
    size_t sent, ndropped; // bytes and tokens, in all steps so far
};

#include "places.h" // give_places: sorts the tokens by expert

/* Tells each rank how many tokens it will get: an all-to-all of one number. The host has
 * to wait for the result, because it passes the counts to ncclRecv. */
static void exchange_counts(struct training *t, size_t l) {
    struct road *road = &t->roads[l];
    const size_t bytes = t->nranks * sizeof(uint64_t);
    uint64_t *leave = t->counts, *come = leave + t->nranks;
    memcpy(road->come, road->leave, bytes); // enough if all blocks have one size
    if (!t->capacity) {
        CHECK_CUDA(cudaMemcpyAsync(leave, road->leave, bytes, cudaMemcpyHostToDevice,
                                   t->stream));
        CHECK_NCCL(ncclGroupStart());
        for (int peer = 0; peer < (int)t->nranks; peer++) {
            CHECK_NCCL(ncclSend(leave + peer, 1, ncclUint64, peer, t->comm, t->stream));
            CHECK_NCCL(ncclRecv(come + peer, 1, ncclUint64, peer, t->comm, t->stream));
        }
        CHECK_NCCL(ncclGroupEnd());
        CHECK_CUDA(
            cudaMemcpyAsync(road->come, come, bytes, cudaMemcpyDeviceToHost, t->stream));
        CHECK_CUDA(cudaStreamSynchronize(t->stream));
    }
    road->coming = 0;
    for (size_t peer = 0; peer < t->nranks; peer++)
        road->coming += road->come[peer];
}

/* An all-to-all of blocks of different sizes: out[peer] tokens go to a rank, in[peer]
 * come from it. out[peer] here is in[rank] there. */
static void exchange(struct training *t, const float *from, const uint64_t *out,
                     float *to, const uint64_t *in) {
    const size_t w = t->n.width;
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < (int)t->nranks; peer++) {
        if (out[peer] > 0) // both sides know that there is nothing to send
            CHECK_NCCL(
                ncclSend(from, out[peer] * w, ncclFloat, peer, t->comm, t->stream));
        if (in[peer] > 0)
            CHECK_NCCL(ncclRecv(to, in[peer] * w, ncclFloat, peer, t->comm, t->stream));
        from += out[peer] * w;
        to += in[peer] * w;
        t->sent += out[peer] * w * sizeof(float);
    }
    CHECK_NCCL(ncclGroupEnd());
}

/* Copies the tokens to their places, and sends them to the ranks of their experts. */
static void dispatch(struct training *t, size_t l, const float *tokens, float *there) {
    const struct road *road = &t->roads[l];
    const size_t w = t->n.width, one = w * sizeof(float);
    // Places that stay empty hold a token of zeros.
    CHECK_CUDA(cudaMemsetAsync(t->leaving, 0, t->nranks * t->capacity * one, t->stream));
    for (size_t i = 0; i < t->share; i++)
        if (road->place[i] != dropped)
            CHECK_CUDA(cudaMemcpyAsync(t->leaving + road->place[i] * w, tokens + i * w,
                                       one, cudaMemcpyDeviceToDevice, t->stream));
    exchange(t, t->leaving, road->leave, there, road->come);
}

/* The way back: each token to where it was before. A dropped token is copied from
 * `without`. */
static void combine(struct training *t, size_t l, const float *there, float *tokens,
                    const float *without) {
    const struct road *road = &t->roads[l];
    const size_t w = t->n.width, *place = road->place;
    exchange(t, there, road->come, t->leaving, road->leave);
    for (size_t i = 0; i < t->share; i++) {
        const float *back =
            place[i] == dropped ? without + i * w : t->leaving + place[i] * w;
        CHECK_CUDA(cudaMemcpyAsync(tokens + i * w, back, w * sizeof(float),
                                   cudaMemcpyDeviceToDevice, t->stream));
    }
}

static void forward(struct training *t, size_t step, size_t l) {
    const struct network *n = &t->n;
    give_places(t, step, l);
    exchange_counts(t, l);
    dispatch(t, l, n->activation[l], t->visiting[l]);
    network_forward(t->blas, n->width, n->width, t->roads[l].coming, n->weight[l],
                    t->visiting[l], t->made);
    combine(t, l, t->made, n->activation[l + 1], n->activation[l]);
}

/* The gradients travel as the tokens did, so the counts are known. All tokens of the
 * expert are on this rank, so the gradient of its weights is complete: nothing to
 * all-reduce. */
static void backward(struct training *t, size_t l) {
    const struct network *n = &t->n;
    const size_t w = n->width, coming = t->roads[l].coming;
    dispatch(t, l, n->activation[l + 1], t->made);
    if (coming == 0)
        CHECK_CUDA(cudaMemsetAsync(n->gradient[l], 0, w * w * sizeof(float), t->stream));
    else
        network_gradient(t->blas, w, w, coming, t->visiting[l], t->made, false,
                         n->gradient[l]);
    if (l == 0)
        return;
    network_backward(t->blas, w, w, coming, n->weight[l], t->made, t->visiting[l]);
    combine(t, l, t->visiting[l], n->activation[l], n->activation[l + 1]);
}

static void make_room(struct training *t) {
    struct network *n = &t->n;
    const size_t token = n->width * sizeof(float), nranks = t->nranks;
    // In the worst case all tokens come to one rank; a capacity limits that.
    const size_t most = nranks * t->capacity, room = n->batch > most ? n->batch : most;
    const size_t bytes = nranks * sizeof(uint64_t);
    t->share = n->batch / nranks;
    network_need((n->layers + 2) * room * token);
    CHECK_CUDA(cudaMalloc((void **)&t->counts, 2 * bytes));
    CHECK_CUDA(cudaMalloc((void **)&t->leaving, room * token));
    CHECK_CUDA(cudaMalloc((void **)&t->made, room * token));
    for (size_t l = 0; l < n->layers; l++) {
        CHECK_CUDA(cudaMalloc((void **)&t->visiting[l], room * token));
        t->roads[l].place = lesson_malloc(t->share * sizeof(size_t));
        uint64_t *leave, *come; // pinned: the host does not wait for copies of it
        CHECK_CUDA(cudaMallocHost((void **)&leave, bytes));
        CHECK_CUDA(cudaMallocHost((void **)&come, bytes));
        t->roads[l].leave = leave;
        t->roads[l].come = come;
    }
    network_malloc(n, t->share);
}

static void free_room(struct training *t) {
    network_free(&t->n);
    for (size_t l = 0; l < t->n.layers; l++) {
        CHECK_CUDA(cudaFreeHost(t->roads[l].come));
        CHECK_CUDA(cudaFreeHost(t->roads[l].leave));
        free(t->roads[l].place);
        CHECK_CUDA(cudaFree(t->visiting[l]));
    }
    CHECK_CUDA(cudaFree(t->made));
    CHECK_CUDA(cudaFree(t->leaving));
    CHECK_CUDA(cudaFree(t->counts));
}

#include "timing.h" // measure, for --time

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
    reference_options(argc, argv, n, &t.load, &t.capacity, &timed);

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
    CHECK_CUDA(cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&t.blas));
    CHECK_CUBLAS(cublasSetStream(t.blas, t.stream));

    make_room(&t);
    const size_t w = n->width, count = network_weights(n), token = w * sizeof(float);
    const size_t capacity = t.capacity;

    // Each rank has its own expert: a different seed, different weights.
    float *result = lesson_malloc(count * sizeof(float));
    float *became = lesson_malloc(t.share * token);
    network_first(n, rank, result);
    CHECK_CUDA(cudaMemcpyAsync(n->weight[0], result, count * sizeof(float),
                               cudaMemcpyHostToDevice, t.stream));
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + rank * t.share, t.share, t.stream);
        for (size_t l = 0; l < n->layers; l++)
            forward(&t, step, l);
        if (step + 1 == n->steps)
            CHECK_CUDA(cudaMemcpyAsync(became, n->activation[n->layers], t.share * token,
                                       cudaMemcpyDeviceToHost, t.stream));
        network_loss(t.blas, w, t.share, n->batch, n->activation[n->layers], n->wanted,
                     &n->distance[step]);
        for (size_t l = n->layers; l-- > 0;)
            backward(&t, l);
        network_update(t.blas, n, count, n->gradient[0], n->momentum[0], n->weight[0]);
    }
    CHECK_CUDA(cudaMemcpyAsync(result, n->weight[0], count * sizeof(float),
                               cudaMemcpyDeviceToHost, t.stream));
    CHECK_CUDA(cudaStreamSynchronize(t.stream));
    network_print_losses(n);
    reference_report(n, &t.load, capacity, t.sent, t.ndropped);
    if (timed)
        measure(&t);
    float *expected = reference_expected(n, &t.load, capacity, became);
    const int exit_code = network_verdict(n, result, expected, count, capacity == 0);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(became);
    free(result);
    free_room(&t);
    CHECK_CUBLAS(cublasDestroy(t.blas));
    CHECK_CUDA(cudaStreamDestroy(t.stream));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
