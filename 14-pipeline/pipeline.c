/*
 * Pipeline parallelism: every rank has some of the layers. A batch goes through all
 * ranks, forward and back, in micro-batches that follow one another.
 *
 *     mpirun -np 4 ./pipeline [--micro M] [--all-forward] [--time] [--layers L] … [-h]
 *
 * Beside it, report.h has the options and the output, timing.h what --time does.
 */
#include "network.h"
#include "report.h"

/* A piece of work: one micro-batch through this rank's layers, forward or backward. */
struct piece {
    size_t micro; // which micro-batch
    bool backward;
    struct network n;      // this rank's layers, with the activations of this micro-batch
    float *comes, *leaves; // what it receives before, and what it sends after
    int from, to;          // the neighbours; -1: none
};

struct pipeline {
    struct network whole, n; // the network, and this rank's layers of it
    int rank, last;          // last: the highest rank
    size_t micro, share;     // micro-batches in a step; samples in each
    size_t ahead;            // at most this many have gone forward here and are not back
    struct piece *pieces;    // of a step: 2 * micro, in this rank's order
    struct network data;     // all samples of a step, on the first and the last rank
    float *arriving;         // a gradient from the next rank
    float *leaving;          // a gradient for the previous rank
    float *distance; // of the output from the target, for each micro-batch and step
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm;
    size_t sent; // bytes, in all steps so far
};

/* Puts the pieces of a step in order: forward while fewer than `ahead` micro-batches are
 * on their way, otherwise the oldest of them backward. Each micro-batch on its way has
 * its own place in the activations, because its backward pass needs them. */
static void make_order(struct pipeline *p) {
    const size_t numbers = p->share * p->n.width;
    const int previous = p->rank - 1, next = p->rank < p->last ? p->rank + 1 : -1;
    size_t forward = 0, backward = 0;
    for (size_t i = 0; i < 2 * p->micro; i++) {
        struct piece *piece = &p->pieces[i];
        piece->backward = forward - backward == p->ahead || forward == p->micro;
        const size_t micro = piece->micro = piece->backward ? backward++ : forward++;
        struct network *n = &piece->n;
        *n = p->n;
        for (size_t l = 0; l <= n->layers; l++)
            n->activation[l] += micro % p->ahead * numbers;
        if (p->rank == 0)
            n->activation[0] = p->data.activation[0] + micro * numbers;
        if (piece->backward && p->rank < p->last)
            n->activation[n->layers] = p->arriving;
        n->wanted = p->data.wanted + micro * numbers;
        piece->from = piece->backward ? next : previous;
        piece->to = piece->backward ? previous : next;
        piece->comes = piece->backward ? p->arriving : n->activation[0];
        piece->leaves = piece->backward ? p->leaving : n->activation[n->layers];
    }
}

/* Between two pieces: sends the result of the one, receives what the other needs. On all
 * ranks, first what goes forward, then what goes backward. Otherwise two neighbours could
 * send to each other at the same time, and wait for ever. NULL: no such piece. */
static void exchange(struct pipeline *p, const struct piece *done,
                     const struct piece *next) {
    const size_t n = p->share * p->n.width;
    for (int back = 0; back <= 1; back++) {
        if (done && done->backward == back && done->to >= 0) {
            CHECK_NCCL(
                ncclSend(done->leaves, n, ncclFloat, done->to, p->comm, p->stream));
            p->sent += n * sizeof(float);
        }
        if (next && next->backward == back && next->from >= 0)
            CHECK_NCCL(
                ncclRecv(next->comes, n, ncclFloat, next->from, p->comm, p->stream));
    }
}

/* Forward, and on the last rank the loss. Or backward: the gradients of the weights add
 * up over the micro-batches, and the gradient for the previous rank gets a separate
 * buffer, where the next input cannot overwrite it. */
static void compute(struct pipeline *p, size_t step, const struct piece *piece) {
    const struct network *n = &piece->n;
    const size_t w = n->width, share = p->share;
    for (size_t l = 0; !piece->backward && l < n->layers; l++)
        network_forward(p->blas, w, w, share, n->weight[l], n->activation[l],
                        n->activation[l + 1]);
    if (!piece->backward && p->rank == p->last)
        network_loss(p->blas, w, share, n->batch, n->activation[n->layers], n->wanted,
                     &p->distance[step * p->micro + piece->micro]);
    for (size_t l = n->layers; piece->backward && l-- > 0;) {
        network_gradient(p->blas, w, w, share, n->activation[l], n->activation[l + 1],
                         piece->micro > 0, n->gradient[l]);
        if (l > 0 || p->rank > 0)
            network_backward(p->blas, w, w, share, n->weight[l], n->activation[l + 1],
                             l > 0 ? n->activation[l] : p->leaving);
    }
}

/* Queues a step. The host waits for nothing. */
static void train(struct pipeline *p, size_t step) {
    const struct piece *done = NULL, *end = p->pieces + 2 * p->micro;
    for (const struct piece *next = p->pieces; next < end; done = next++) {
        exchange(p, done, next);
        compute(p, step, next);
    }
    exchange(p, done, NULL);
    network_update(p->blas, &p->whole, network_weights(&p->n), p->n.gradient[0],
                   p->n.momentum[0], p->n.weight[0]);
}

static void make_room(struct pipeline *p) {
    struct network *n = &p->n;
    const size_t bytes = n->batch * n->width * sizeof(float);
    const size_t distances = n->steps * p->micro * sizeof(float);
    CHECK_CUDA(cudaMalloc((void **)&p->distance, distances));
    CHECK_CUDA(cudaMemset(p->distance, 0, distances));
    network_malloc(n, p->ahead * p->share); // also waits for the cudaMemset
    p->data = *n;
    CHECK_CUDA(cudaMalloc((void **)&p->data.activation[0], bytes));
    CHECK_CUDA(cudaMalloc((void **)&p->data.wanted, bytes));
    CHECK_CUDA(cudaMalloc((void **)&p->arriving, bytes / p->micro));
    CHECK_CUDA(cudaMalloc((void **)&p->leaving, bytes / p->micro));
    p->pieces = lesson_malloc(2 * p->micro * sizeof *p->pieces);
}

static void free_room(struct pipeline *p) {
    free(p->pieces);
    CHECK_CUDA(cudaFree(p->leaving));
    CHECK_CUDA(cudaFree(p->arriving));
    CHECK_CUDA(cudaFree(p->data.wanted));
    CHECK_CUDA(cudaFree(p->data.activation[0]));
    network_free(&p->n);
    CHECK_CUDA(cudaFree(p->distance));
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
    struct pipeline p = {.rank = rank, .last = nranks - 1};
    struct network *whole = &p.whole, *n = &p.n;
    const struct asked asked = report_options(argc, argv, whole);
    p.micro = asked.micro;
    p.share = whole->batch / p.micro;

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&p.comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&p.blas));
    CHECK_CUBLAS(cublasSetStream(p.blas, p.stream));

    // This rank's layers. In turns, the first micro-batch is back when one for this rank
    // and one for each later rank have gone forward here; that many are kept.
    const size_t first = whole->layers * rank / nranks, w = whole->width;
    *n = *whole;
    n->layers = whole->layers * (rank + 1) / nranks - first;
    p.ahead = nranks - rank;
    if (asked.all_forward || p.ahead > p.micro)
        p.ahead = p.micro;
    make_room(&p);
    make_order(&p);

    // Each weight is on one rank only, so there are no copies to keep equal.
    const size_t mine = first * w * w, weights = network_weights(n);
    float *host = lesson_malloc(network_weights(whole) * sizeof(float));
    network_first(whole, 0, host);
    CHECK_CUDA(cudaMemcpyAsync(n->weight[0], host + mine, weights * sizeof(float),
                               cudaMemcpyHostToDevice, p.stream));
    for (size_t step = 0; step < whole->steps; step++) {
        if (rank == 0 || rank == p.last)
            network_load(&p.data, step * whole->batch, whole->batch, p.stream);
        train(&p, step);
    }
    CHECK_CUDA(cudaStreamSynchronize(p.stream));
    CHECK_CUDA(
        cudaMemcpy(host, n->weight[0], weights * sizeof(float), cudaMemcpyDeviceToHost));
    network_print_distances(n, p.distance, p.micro);
    report_work(n, first, p.ahead, p.micro, p.sent / n->steps);
    if (asked.timed)
        measure(&p);
    float *expected = network_expected(whole);
    // With one micro-batch the products are those of one process, bit for bit. (If 4 does
    // not divide the width, cuBLAS may use other kernels for unaligned layers.)
    const bool exact = p.micro == 1 && w % 4 == 0;
    const int exit_code = network_verdict(whole, host, expected + mine, weights, exact);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(expected);
    free(host);
    free_room(&p);
    CHECK_CUBLAS(cublasDestroy(p.blas));
    CHECK_CUDA(cudaStreamDestroy(p.stream));
    CHECK_NCCL(ncclCommDestroy(p.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
