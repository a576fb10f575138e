/*
 * A grid of ranks. The ranks of a row divide the weights of every layer (tensor
 * parallel), those of a column the samples (data parallel); each row and each column is a
 * communicator.
 *
 *     mpirun -np 4 ./grid [--columns C] [--apart] [--time] [--layers L] … [-h]
 *
 * Beside it, report.h has the options and the output.
 */
#include "clock.h"
#include "network.h"
#include "report.h"

struct grid {
    struct network whole, n;        // the network, and this rank's part of it
    int rows, columns, row, column; // the size of the grid, and this rank's place in it
    size_t share;                   // samples of a step that are this row's
    size_t first, slice;          // of the width, this column has first … first+slice-1
    ncclComm_t in_row, in_column; // all ranks of this row; all ranks of this column
    cudaStream_t stream;
    cublasHandle_t blas;
    size_t row_bytes, column_bytes; // all-reduced, in all steps so far
};

/* Copies this rank's part of all weights: some columns of the first matrix of each pair,
 * and the same rows of the second. Matrices are stored by rows. */
static void cut(const struct grid *g, const float *whole, float *part) {
    const size_t w = g->n.width, slice = g->slice, size = slice * sizeof(float);
    for (size_t l = 0; l < g->n.layers; l++, whole += w * w, part += w * slice) {
        for (size_t row = 0; l % 2 == 0 && row < w; row++)
            memcpy(part + row * slice, whole + row * w + g->first, size);
        if (l % 2 == 1)
            memcpy(part, whole + g->first * w, w * size);
    }
}

/* Each rank of a row has a part of every number; this adds the parts up. */
static void add_in_row(struct grid *g, float *numbers) {
    const size_t count = g->share * g->n.width;
    CHECK_NCCL(
        ncclAllReduce(numbers, numbers, count, ncclFloat, ncclSum, g->in_row, g->stream));
    g->row_bytes += count * sizeof(float);
}

/* The ranks of a column have computed gradients from different samples; this averages. */
static void average_in_column(struct grid *g, float *gradients, size_t count) {
    CHECK_NCCL(ncclAllReduce(gradients, gradients, count, ncclFloat, ncclAvg,
                             g->in_column, g->stream));
    g->column_bytes += count * sizeof(float);
}

/* Queues a step, with or without communication. The host waits for nothing. */
static void train(struct grid *g, size_t step, bool rows, bool columns) {
    const struct network *n = &g->n;
    const size_t w = n->width, slice = g->slice, share = g->share;
    // The first product needs all numbers of a sample and makes this rank's slice. The
    // second needs only the slice, and makes a part of every sum.
    for (size_t l = 0; l < n->layers; l += 2) {
        network_forward(g->blas, w, slice, share, n->weight[l], n->activation[l],
                        n->activation[l + 1]);
        network_forward(g->blas, slice, w, share, n->weight[l + 1], n->activation[l + 1],
                        n->activation[l + 2]);
        if (rows)
            add_in_row(g, n->activation[l + 2]);
    }
    network_loss(g->blas, w, share, share, n->activation[n->layers], n->wanted,
                 &n->distance[step]);
    // Backward it is the other way round: the product with the first matrix makes parts.
    for (size_t l = n->layers; l > 0;) {
        l -= 2;
        network_gradient(g->blas, slice, w, share, n->activation[l + 1],
                         n->activation[l + 2], false, n->gradient[l + 1]);
        network_backward(g->blas, slice, w, share, n->weight[l + 1], n->activation[l + 2],
                         n->activation[l + 1]);
        network_gradient(g->blas, w, slice, share, n->activation[l], n->activation[l + 1],
                         false, n->gradient[l]);
        if (l > 0)
            network_backward(g->blas, w, slice, share, n->weight[l], n->activation[l + 1],
                             n->activation[l]);
        if (l > 0 && rows)
            add_in_row(g, n->activation[l]);
        if (columns)
            average_in_column(g, n->gradient[l], 2 * w * slice);
    }
    network_update(g->blas, n, n->layers * w * slice, n->gradient[0], n->momentum[0],
                   n->weight[0]);
}

/* This rank's samples, and its part of every layer. */
static void take_part(struct grid *g) {
    const size_t w = g->whole.width;
    g->share = g->whole.batch / g->rows;
    g->first = w * g->column / g->columns;
    g->slice = w * (g->column + 1) / g->columns - g->first;
    g->n = g->whole;
    network_malloc_layers(&g->n, w * g->slice, g->share);
}

static size_t weights_here(const struct grid *g) {
    return g->n.layers * g->n.width * g->slice;
}

/* Initial weights: all ranks make the same ones, and each keeps its part. */
static void first_weights(const struct grid *g) {
    const size_t bytes = weights_here(g) * sizeof(float);
    float *all = lesson_malloc(network_weights(&g->whole) * sizeof(float));
    float *part = lesson_malloc(bytes);
    network_first(&g->whole, 0, all);
    cut(g, all, part);
    CHECK_CUDA(
        cudaMemcpyAsync(g->n.weight[0], part, bytes, cudaMemcpyHostToDevice, g->stream));
    free(part); // it is not pinned, so it has been read
    free(all);
}

/* Times a step without communication, with that of the rows, and with both. They take
 * turns, so that a disturbance on the machine affects all three alike. */
static void measure(struct grid *g) {
    enum { COMPUTE, ROWS, BOTH, STEPS = 10 };
    struct stopwatch watches[3] = {{0}};
    for (int w = COMPUTE; !stopwatch_settled(&watches[BOTH]); w = (w + 1) % 3) {
        stopwatch_start(&watches[w]);
        for (int i = 0; i < STEPS; i++)
            train(g, 0, w != COMPUTE, w == BOTH);
        CHECK_CUDA(cudaStreamSynchronize(g->stream));
        stopwatch_stop(&watches[w], STEPS);
    }
    report_times(watches[COMPUTE].seconds, watches[ROWS].seconds, watches[BOTH].seconds);
}

/* Prints what the training has given, and compares this rank's weights with those that
 * one process gets. Returns the program's exit code. */
static int verdict(struct grid *g, const struct asked *asked) {
    const struct network *n = &g->n;
    const size_t weights = weights_here(g), bytes = weights * sizeof(float);
    float *part = lesson_malloc(bytes), *result = lesson_malloc(bytes);
    CHECK_CUDA(cudaMemcpy(result, n->weight[0], bytes, cudaMemcpyDeviceToHost));
    // All ranks of a row have the same loss, so only one counts.
    if (g->column > 0)
        CHECK_CUDA(cudaMemset(n->distance, 0, n->steps * sizeof(float)));
    network_print_losses(n);
    report_columns(g->row, g->column, result, weights);
    report_place(asked, g->row, g->column, g->share, g->first, g->slice);
    report_bytes(n, g->share, g->slice, g->row_bytes / n->steps,
                 g->column_bytes / n->steps);
    if (asked->timed)
        measure(g);
    float *expected = network_expected(&g->whole);
    cut(g, expected, part);
    const bool exact = g->rows * g->columns == 1;
    const int exit_code = network_verdict(&g->whole, result, part, weights, exact);
    free(expected);
    free(result);
    free(part);
    return exit_code;
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct grid g = {0};
    struct network *whole = &g.whole, *n = &g.n;
    const struct asked asked = report_options(argc, argv, whole);
    g.rows = asked.rows;
    g.columns = asked.columns;

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

    // Ranks that give the same color get one communicator, ordered by key. The ranks of a
    // node are consecutive, so this decides which communicator stays inside a node.
    g.row = asked.apart ? rank % g.rows : rank / g.columns;
    g.column = asked.apart ? rank / g.rows : rank % g.columns;
    CHECK_NCCL(ncclCommSplit(comm, g.row, g.column, &g.in_row, NULL));
    CHECK_NCCL(ncclCommSplit(comm, g.column, g.row, &g.in_column, NULL));
    CHECK_CUDA(cudaStreamCreateWithFlags(&g.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&g.blas));
    CHECK_CUBLAS(cublasSetStream(g.blas, g.stream));

    take_part(&g);
    first_weights(&g);
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + g.row * g.share, g.share, g.stream);
        train(&g, step, true, true);
    }
    CHECK_CUDA(cudaStreamSynchronize(g.stream)); // the host waits only here
    const int exit_code = verdict(&g, &asked);

    // Clean up in reverse order, so that nothing goes while something still uses it.
    network_free(n);
    CHECK_CUBLAS(cublasDestroy(g.blas));
    CHECK_CUDA(cudaStreamDestroy(g.stream));
    CHECK_NCCL(ncclCommDestroy(g.in_column));
    CHECK_NCCL(ncclCommDestroy(g.in_row));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
