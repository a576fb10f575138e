/*
 * Pipeline parallelism: every rank has some of the layers. A batch goes through all
 * ranks, forward and back, in micro-batches that follow one another.
 *
 *     mpirun -np 4 ./pipeline [--micro M] [--all-forward] [--time] [--layers L] … [-h]
 *
 * Beside it, report.h has the options, the initial weights, and the output.
 */
#include "clock.h"
#include "network.h"
#include "report.h"

struct pipeline {
    struct network whole, n; // the network, and this rank's layers of it
    int rank, last;          // last: the highest rank
    size_t first;            // this rank's first layer
    size_t micro, share;     // micro-batches in a step; samples in each
    size_t ahead;            // at most this many have gone forward here and are not back
    struct network data;     // all samples of a step; the first and the last rank fill it
    float *arriving, *leaving; // a gradient from the next rank; one for the previous rank
    cudaStream_t stream;
    cublasHandle_t blas;
    ncclComm_t comm;
    size_t sent; // bytes, in all steps so far
};

/* A piece of work: one micro-batch through this rank's layers, one way. */
struct piece {
    enum { NONE, FORWARD, BACKWARD } way;
    size_t micro; // which micro-batch
};

/* The input of layer l in a micro-batch. Micro-batches that are on their way have
 * different places, because the backward pass needs these numbers again. */
static float *activation(const struct pipeline *p, size_t l, size_t micro) {
    const size_t numbers = p->share * p->n.width;
    if (p->rank == 0 && l == 0)
        return p->data.activation[0] + micro * numbers;
    return p->n.activation[l] + micro % p->ahead * numbers;
}

/* A micro-batch through this rank's layers; on the last rank also the loss. */
static void forward(struct pipeline *p, size_t step, size_t micro) {
    const size_t w = p->n.width, share = p->share, layers = p->n.layers;
    for (size_t l = 0; l < layers; l++)
        network_forward(p->blas, w, w, share, p->n.weight[l], activation(p, l, micro),
                        activation(p, l + 1, micro));
    if (p->rank == p->last)
        network_loss(p->blas, w, share, p->n.batch, activation(p, layers, micro),
                     p->data.wanted + micro * share * w,
                     &p->data.distance[step * p->micro + micro]);
}

/* The same backward. The gradients of the weights add up over the micro-batches. */
static void backward(struct pipeline *p, size_t micro) {
    const size_t w = p->n.width, share = p->share, layers = p->n.layers;
    const float *dy = p->rank < p->last ? p->arriving : activation(p, layers, micro);
    for (size_t l = layers; l-- > 0;) {
        float *x = activation(p, l, micro);
        // What leaves has a separate buffer, where the next input can't overwrite it.
        float *dx = l > 0 ? x : p->leaving;
        network_gradient(p->blas, w, w, share, x, dy, micro > 0, p->n.gradient[l]);
        if (l > 0 || p->rank > 0)
            network_backward(p->blas, w, w, share, p->n.weight[l], dy, dx);
        dy = dx;
    }
}

/* Between two pieces: sends the result of the one, receives what the other needs. On all
 * ranks, first what goes forward, then what goes backward. Otherwise two neighbours could
 * send to each other at the same time, and wait for ever. */
static void exchange(struct pipeline *p, struct piece done, struct piece next) {
    const size_t n = p->share * p->n.width;
    if (done.way == FORWARD && p->rank < p->last) {
        CHECK_NCCL(ncclSend(activation(p, p->n.layers, done.micro), n, ncclFloat,
                            p->rank + 1, p->comm, p->stream));
        p->sent += n * sizeof(float);
    }
    if (next.way == FORWARD && p->rank > 0)
        CHECK_NCCL(ncclRecv(activation(p, 0, next.micro), n, ncclFloat, p->rank - 1,
                            p->comm, p->stream));
    if (done.way == BACKWARD && p->rank > 0) {
        CHECK_NCCL(ncclSend(p->leaving, n, ncclFloat, p->rank - 1, p->comm, p->stream));
        p->sent += n * sizeof(float);
    }
    if (next.way == BACKWARD && p->rank < p->last)
        CHECK_NCCL(ncclRecv(p->arriving, n, ncclFloat, p->rank + 1, p->comm, p->stream));
}

/* Queues a step. The host waits for nothing. */
static void train(struct pipeline *p, size_t step) {
    size_t forwards = 0, backwards = 0; // pieces so far
    struct piece done = {NONE, 0}, next;
    for (; backwards < p->micro; done = next) {
        // Enough are on their way, or no more are left: the oldest goes backward.
        if (forwards - backwards == p->ahead || forwards == p->micro)
            next = (struct piece){BACKWARD, backwards++};
        else
            next = (struct piece){FORWARD, forwards++};
        exchange(p, done, next);
        if (next.way == FORWARD)
            forward(p, step, next.micro);
        else
            backward(p, next.micro);
    }
    exchange(p, done, (struct piece){NONE, 0});
    network_update(p->blas, &p->whole, network_weights(&p->n), p->n.gradient[0],
                   p->n.momentum[0], p->n.weight[0]);
}

/* Times a step, and its computing alone on the slowest rank. They take turns, so that a
 * disturbance on the machine affects both alike. */
static void measure(struct pipeline *p) {
    struct stopwatch alone = {0}, step = {0};
    while (!stopwatch_settled(&step)) {
        stopwatch_start(&alone);
        for (size_t micro = 0; micro < p->micro; micro++) {
            forward(p, 0, micro);
            backward(p, micro);
        }
        CHECK_CUDA(cudaStreamSynchronize(p->stream));
        stopwatch_stop(&alone, 1);
        stopwatch_start(&step);
        train(p, 0);
        CHECK_CUDA(cudaStreamSynchronize(p->stream));
        stopwatch_stop(&step, 1);
    }
    report_times(step.seconds, alone.seconds);
}

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

    // One rank makes the unique id, MPI carries it, and all ranks make the communicator.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&p.comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&p.blas));
    CHECK_CUBLAS(cublasSetStream(p.blas, p.stream));

    // This rank's layers: first, first + 1, …
    p.first = whole->layers * rank / nranks;
    *n = *whole;
    n->layers = whole->layers * (rank + 1) / nranks - p.first;
    // With 1F1B this many go forward here before the first one comes back: one for this
    // rank, and one for each later rank.
    p.ahead = nranks - rank;
    if (asked.all_forward || p.ahead > p.micro)
        p.ahead = p.micro;
    network_malloc(n, p.ahead * p.share);
    // No layers: only samples, targets and, for each micro-batch of a step, a distance.
    p.data = *whole;
    p.data.layers = 0;
    p.data.steps *= p.micro;
    network_malloc_samples(&p.data, whole->batch);
    const size_t bytes = p.share * n->width * sizeof(float);
    CHECK_CUDA(cudaMalloc((void **)&p.arriving, bytes));
    CHECK_CUDA(cudaMalloc((void **)&p.leaving, bytes));

    report_first(whole, n, p.first, p.stream);
    for (size_t step = 0; step < whole->steps; step++) {
        if (rank == 0 || rank == p.last)
            network_load(&p.data, step * whole->batch, whole->batch, p.stream);
        train(&p, step);
    }
    CHECK_CUDA(cudaStreamSynchronize(p.stream)); // the host waits only here
    const size_t weights = network_weights(n);
    float *result = lesson_malloc(weights * sizeof(float));
    CHECK_CUDA(cudaMemcpy(result, n->weight[0], weights * sizeof(float),
                          cudaMemcpyDeviceToHost));
    network_print_distances(n, p.data.distance, p.micro);
    report_work(n, p.first, p.ahead, p.micro, p.sent / n->steps);
    if (asked.timed)
        measure(&p);
    const int exit_code = report_verdict(whole, n, p.first, p.micro, result);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    free(result);
    CHECK_CUDA(cudaFree(p.leaving));
    CHECK_CUDA(cudaFree(p.arriving));
    network_free_samples(&p.data);
    network_free(n);
    CHECK_CUBLAS(cublasDestroy(p.blas));
    CHECK_CUDA(cudaStreamDestroy(p.stream));
    CHECK_NCCL(ncclCommDestroy(p.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
