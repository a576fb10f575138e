/*
 * model.h: what grid does with the weights before and after the training.
 */
#ifndef MODEL_H
#define MODEL_H

#include "timing.h"

/* Ends the job unless the ranks of each column have the same weights, bit for bit. */
static void check_columns(const struct grid *g, const float *host, size_t count) {
    MPI_Comm column;
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, g->column, g->row, &column));
    network_check_copies(host, count, "after the last step", column);
    CHECK_MPI(MPI_Comm_free(&column));
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
    check_columns(g, result, weights);
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

#endif
