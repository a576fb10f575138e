/*
 * Experts: tokens travel to the rank of their expert and back. No rank knows beforehand
 * how many will come.
 *
 *     mpirun -np 4 ./experts [--load LOAD] [--capacity C] [--time] [--layers L] … [-h]
 *
 * Beside it, reference.h has the options, the rule by which a token chooses its expert,
 * and the same training in one process; places.h sorts this rank's tokens; model.h has
 * the initial weights and the check of the final ones, timing.h what --time does.
 */
#include "network.h"
#include "reference.h"

/* How this rank's tokens travel in a layer. */
struct route {
    size_t *place;          // of each token, among the tokens that leave
    uint64_t *leave, *come; // how many tokens go to each rank, and come from each
    uint64_t coming;        // from all ranks together
};

struct training {
    struct network n; // the weights of this rank's expert, a matrix in each layer
    struct load load;
    size_t rank, nranks, share, capacity;
    struct route routes[NETWORK_LAYERS];
    float *leaving;                  // this rank's tokens, sorted by expert
    float *visiting[NETWORK_LAYERS]; // the tokens that have come to this rank's expert
    float *computed;                 // what the expert computes from them
    uint64_t *counts;                // on the GPU: first leave, then come
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm;
    size_t sent, ndropped; // bytes and tokens, in all steps so far
    float *output;         // of the last step, in host memory, for the check
};

#include "places.h" // give_places, to_places, from_places: sorts the tokens by expert

/* Tells each rank how many tokens it will get: an all-to-all of one number. The host has
 * to wait for the result, because it passes the counts to ncclRecv. */
static void exchange_counts(struct training *t, size_t l) {
    struct route *route = &t->routes[l];
    const size_t bytes = t->nranks * sizeof(uint64_t);
    uint64_t *leave = t->counts, *come = leave + t->nranks;
    memcpy(route->come, route->leave, bytes); // right if all blocks have one size
    if (!t->capacity) {
        CHECK_CUDA(cudaMemcpyAsync(leave, route->leave, bytes, cudaMemcpyHostToDevice,
                                   t->stream));
        CHECK_NCCL(ncclGroupStart());
        for (int peer = 0; peer < (int)t->nranks; peer++) {
            CHECK_NCCL(ncclSend(leave + peer, 1, ncclUint64, peer, t->comm, t->stream));
            CHECK_NCCL(ncclRecv(come + peer, 1, ncclUint64, peer, t->comm, t->stream));
        }
        CHECK_NCCL(ncclGroupEnd());
        CHECK_CUDA(
            cudaMemcpyAsync(route->come, come, bytes, cudaMemcpyDeviceToHost, t->stream));
        CHECK_CUDA(cudaStreamSynchronize(t->stream));
    }
    route->coming = 0;
    for (size_t peer = 0; peer < t->nranks; peer++)
        route->coming += route->come[peer];
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

/* The tokens go to their experts and come back, each to where it was before. Every token
 * that came goes back, so on the way back the two lists of counts change places. */
static void forward(struct training *t, size_t step, size_t l) {
    const struct network *n = &t->n;
    const struct route *route = &t->routes[l];
    give_places(t, step, l);
    exchange_counts(t, l);
    to_places(t, l, n->activation[l]);
    exchange(t, t->leaving, route->leave, t->visiting[l], route->come);
    network_forward(t->blas, n->width, n->width, route->coming, n->weight[l],
                    t->visiting[l], t->computed);
    exchange(t, t->computed, route->come, t->leaving, route->leave);
    from_places(t, l, n->activation[l + 1], n->activation[l]);
}

/* The gradients travel as the tokens did, so the counts are known. All tokens of the
 * expert are on this rank, so the gradient of its weights is complete: nothing to
 * all-reduce. */
static void backward(struct training *t, size_t l) {
    const struct network *n = &t->n;
    const struct route *route = &t->routes[l];
    const size_t w = n->width, coming = route->coming;
    to_places(t, l, n->activation[l + 1]);
    exchange(t, t->leaving, route->leave, t->computed, route->come);
    if (coming == 0)
        CHECK_CUDA(cudaMemsetAsync(n->gradient[l], 0, w * w * sizeof(float), t->stream));
    else
        network_gradient(t->blas, w, w, coming, t->visiting[l], t->computed, false,
                         n->gradient[l]);
    if (l == 0)
        return;
    network_backward(t->blas, w, w, coming, n->weight[l], t->computed, t->visiting[l]);
    exchange(t, t->visiting[l], route->come, t->leaving, route->leave);
    from_places(t, l, n->activation[l], n->activation[l + 1]);
}

static void allocate(struct training *t) {
    struct network *n = &t->n;
    const size_t token = n->width * sizeof(float), nranks = t->nranks, layers = n->layers;
    // Room for all tokens of the batch, because all may choose one expert, or for nranks
    // blocks of the capacity, if that is more.
    const size_t most = nranks * t->capacity, room = n->batch > most ? n->batch : most;
    const size_t bytes = nranks * sizeof(uint64_t);
    network_need((layers + 2) * room * token);
    CHECK_CUDA(cudaMalloc((void **)&t->counts, 2 * bytes));
    CHECK_CUDA(cudaMalloc((void **)&t->leaving, room * token));
    CHECK_CUDA(cudaMalloc((void **)&t->computed, room * token));
    for (size_t l = 0; l < layers; l++) {
        CHECK_CUDA(cudaMalloc((void **)&t->visiting[l], room * token));
        t->routes[l].place = lesson_malloc(t->share * sizeof(size_t));
        uint64_t *leave, *come; // pinned: the host does not wait for copies of it
        CHECK_CUDA(cudaMallocHost((void **)&leave, bytes));
        CHECK_CUDA(cudaMallocHost((void **)&come, bytes));
        t->routes[l].leave = leave;
        t->routes[l].come = come;
    }
    network_malloc(n, t->share);
    t->output = lesson_malloc(t->share * token);
}

static void free_all(struct training *t) {
    free(t->output);
    network_free(&t->n);
    for (size_t l = 0; l < t->n.layers; l++) {
        CHECK_CUDA(cudaFreeHost(t->routes[l].come));
        CHECK_CUDA(cudaFreeHost(t->routes[l].leave));
        free(t->routes[l].place);
        CHECK_CUDA(cudaFree(t->visiting[l]));
    }
    CHECK_CUDA(cudaFree(t->computed));
    CHECK_CUDA(cudaFree(t->leaving));
    CHECK_CUDA(cudaFree(t->counts));
}

#include "model.h" // first_weights, keep_output, verdict

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
    first_weights(&t);
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + rank * t.share, t.share, t.stream);
        for (size_t l = 0; l < n->layers; l++)
            forward(&t, step, l);
        keep_output(&t, step);
        network_loss(t.blas, n->width, t.share, n->batch, n->activation[n->layers],
                     n->wanted, &n->distance[step]);
        for (size_t l = n->layers; l-- > 0;)
            backward(&t, l);
        network_update(t.blas, n, network_weights(n), n->gradient[0], n->momentum[0],
                       n->weight[0]);
    }
    CHECK_CUDA(cudaStreamSynchronize(t.stream));
    const int exit_code = verdict(&t, timed);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free_all(&t);
    CHECK_CUBLAS(cublasDestroy(t.blas));
    CHECK_CUDA(cudaStreamDestroy(t.stream));
    CHECK_NCCL(ncclCommDestroy(t.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
