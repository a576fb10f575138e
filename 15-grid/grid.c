/*
 * A grid of ranks. The ranks of a row share the weights of every layer (tensor parallel),
 * the rows share the samples (data parallel); each row and each column is a communicator.
 *
 *     mpirun -np 4 ./grid [--columns C] [--apart] [--time] [--layers L] … [-h]
 *
 * Beside it: report.h has the options and prints the lines.
 */
#include "clock.h"
#include "network.h"
#include "report.h"

struct grid {
    struct network whole, n;        // the network, and this rank's part of it
    int rows, columns, row, column; // how many, and where this rank is
    size_t share;                   // of the batch, for this row
    size_t first;                   // the beginning of this column's slice of the width
    ncclComm_t in_row, in_column;   // with the other ranks of this row, of this column
    cudaStream_t stream;
    cublasHandle_t blas;
    size_t row_bytes, column_bytes; // all-reduced, in all steps so far
};

/* This rank's part of all weights: of the first matrix of a pair a slice of the columns,
 * of the second the same slice of the rows. A row of W, the weights of one input, lies
 * one behind the other in memory. */
static void cut(const struct grid *g, const float *whole, float *part) {
    const size_t w = g->n.width, slice = g->n.slice, size = slice * sizeof(float);
    for (size_t l = 0; l < g->n.layers; l++, whole += w * w, part += w * slice) {
        for (size_t row = 0; l % 2 == 0 && row < w; row++)
            memcpy(part + row * slice, whole + row * w + g->first, size);
        if (l % 2 == 1)
            memcpy(part, whole + g->first * w, w * size);
    }
}

/* Adds up what the ranks of a row have: each has a part of every number. */
static void add_in_row(struct grid *g, float *numbers) {
    const size_t count = g->share * g->n.width;
    CHECK_NCCL(
        ncclAllReduce(numbers, numbers, count, ncclFloat, ncclSum, g->in_row, g->stream));
    g->row_bytes += count * sizeof(float);
}

/* The mean of the gradients that the ranks of a column have: each saw other samples. */
static void average_in_column(struct grid *g, float *gradients, size_t count) {
    CHECK_NCCL(ncclAllReduce(gradients, gradients, count, ncclFloat, ncclAvg,
                             g->in_column, g->stream));
    g->column_bytes += count * sizeof(float);
}

/* Queues a step, with the communication or without. The host waits for nothing. */
static void train(struct grid *g, size_t step, bool rows, bool columns) {
    const struct network *n = &g->n;
    const size_t w = n->width, slice = n->slice, share = g->share;
    // From all numbers some of those between the layers, without asking anybody. From
    // these a part of the sum in every number behind them.
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
    // Backward it is the first matrix whose ranks have a part of every sum.
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
    network_update(g->blas, n, network_weights(n), n->gradient[0], n->momentum[0],
                   n->weight[0]);
}

/* How long a step takes without communication, with that of the rows, and with both: in
 * turns, so that what happens to the machine meanwhile happens to all three. */
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

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));

    // Ranks with the same color come together, in the order of their keys. The ranks of a
    // node follow one another, so this decides which communicator stays inside a node.
    g.row = asked.apart ? rank % g.rows : rank / g.columns;
    g.column = asked.apart ? rank / g.rows : rank % g.columns;
    CHECK_NCCL(ncclCommSplit(comm, g.row, g.column, &g.in_row, NULL));
    CHECK_NCCL(ncclCommSplit(comm, g.column, g.row, &g.in_column, NULL));
    CHECK_CUDA(cudaStreamCreateWithFlags(&g.stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&g.blas));
    CHECK_CUBLAS(cublasSetStream(g.blas, g.stream));

    const size_t w = whole->width;
    g.share = whole->batch / g.rows;
    g.first = w * g.column / g.columns;
    *n = *whole;
    n->slice = w * (g.column + 1) / g.columns - g.first;
    network_malloc(n, g.share);
    const size_t weights = network_weights(n), bytes = weights * sizeof(float);
    float *all = lesson_malloc(network_weights(whole) * sizeof(float));
    float *part = lesson_malloc(bytes), *result = lesson_malloc(bytes);
    network_first(whole, 0, all);
    cut(&g, all, part);
    CHECK_CUDA(
        cudaMemcpyAsync(n->weight[0], part, bytes, cudaMemcpyHostToDevice, g.stream));
    for (size_t step = 0; step < n->steps; step++) {
        network_load(n, step * n->batch + g.row * g.share, g.share, g.stream);
        train(&g, step, true, true);
    }
    CHECK_CUDA(cudaStreamSynchronize(g.stream));
    CHECK_CUDA(cudaMemcpy(result, n->weight[0], bytes, cudaMemcpyDeviceToHost));

    // All ranks of a row have the same loss: one counts. Those of a column have copies.
    if (g.column > 0) {
        CHECK_CUDA(cudaMemset(n->distance, 0, n->steps * sizeof(float)));
    }
    network_print_losses(n);
    MPI_Comm column;
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, g.column, g.row, &column));
    network_check_copies(result, weights, "after the last step", column);
    CHECK_MPI(MPI_Comm_free(&column));
    report_place(&asked, g.row, g.column, n, g.share, g.first);
    report_bytes(n, g.share, g.row_bytes / n->steps, g.column_bytes / n->steps);
    if (asked.timed)
        measure(&g);
    float *expected = network_expected(whole);
    cut(&g, expected, part);
    const int exit_code = network_verdict(whole, result, part, weights, nranks == 1);

    // In reverse order: nothing may go while something made later still uses it.
    free(expected);
    free(result);
    free(part);
    free(all);
    network_free(n);
    CHECK_CUBLAS(cublasDestroy(g.blas));
    CHECK_CUDA(cudaStreamDestroy(g.stream));
    CHECK_NCCL(ncclCommDestroy(g.in_column));
    CHECK_NCCL(ncclCommDestroy(g.in_row));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
