/*
 * reference.h: the same training in one process, with all experts and all tokens, one
 * token after the other.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "places.h"

/* Trains all experts in this process. Layer l of the network here is layer l of all
 * experts, one after the other.
 *   like      the network of one expert
 *   capacity  of each expert, for the tokens of one rank; 0: there is no limit
 *   weights   after the last step: all layers, in each of them all experts
 *   tokens    the output for the last step's tokens; both in host memory */
static inline void reference(const struct network *like, const struct load *load,
                             size_t capacity, float *weights, float *tokens) {
    struct network n = *like;
    const size_t w = n.width, one = w * w, nexperts = load->nexperts, batch = n.batch;
    const size_t row = w * sizeof(float), all = n.layers * nexperts * one;
    size_t *taken = lesson_malloc(nexperts * sizeof *taken);
    cublasHandle_t blas;
    network_malloc_layers(&n, nexperts * one, batch);
    CHECK_CUBLAS(cublasCreate(&blas));
    for (size_t e = 0; e < nexperts; e++) {
        network_first(&n, e, weights);
        for (size_t l = 0; l < n.layers; l++)
            CHECK_CUDA(cudaMemcpy(n.weight[l] + e * one, weights + l * one, w * row,
                                  cudaMemcpyHostToDevice));
    }
    for (size_t step = 0; step < n.steps; step++) {
        network_load(&n, step * batch, batch, NULL);
        CHECK_CUDA(cudaMemset(n.gradient[0], 0, all * sizeof(float)));
        // Twice through the layers: forward, then backward.
        for (size_t use = 0; use < 2 * n.layers; use++) {
            const bool forward = use < n.layers;
            const size_t l = forward ? use : 2 * n.layers - 1 - use;
            for (size_t i = 0; i < batch; i++) {
                const size_t e = load_expert(load, step, l, step * batch + i);
                float *x = n.activation[l] + i * w, *y = n.activation[l + 1] + i * w;
                if (i % (batch / nexperts) == 0) // the first token of a rank
                    memset(taken, 0, nexperts * sizeof *taken);
                if (capacity && taken[e]++ >= capacity) { // dropped: it stays as it is
                    CHECK_CUDA(cudaMemcpyAsync(forward ? y : x, forward ? x : y, row,
                                               cudaMemcpyDeviceToDevice, NULL));
                } else if (forward) {
                    network_forward(blas, w, w, 1, n.weight[l] + e * one, x, y);
                } else {
                    network_gradient(blas, w, w, 1, x, y, true, n.gradient[l] + e * one);
                    network_backward(blas, w, w, 1, n.weight[l] + e * one, y, x);
                }
            }
            if (use + 1 == n.layers) {
                CHECK_CUDA(cudaMemcpy(tokens, n.activation[n.layers], batch * row,
                                      cudaMemcpyDeviceToHost));
                network_loss(blas, w, batch, batch, n.activation[n.layers], n.wanted,
                             &n.distance[step]);
            }
        }
        network_update(blas, &n, all, n.gradient[0], n.momentum[0], n.weight[0]);
    }
    CHECK_CUDA(
        cudaMemcpy(weights, n.weight[0], all * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK_CUBLAS(cublasDestroy(blas));
    network_free(&n);
    free(taken);
}

/* Compares what the training has given with what one process gets: rank 0 trains all
 * experts, and MPI carries the results to the ranks. Ends the job unless this rank's
 * tokens are back in their places with the right values. Returns the program's exit code.
 *   weights  of this rank's expert, on the GPU
 *   became   the output for this rank's tokens of the last step, in host memory */
static inline int reference_verdict(const struct network *n, const struct load *load,
                                    size_t capacity, const float *weights,
                                    const float *became) {
    const size_t count = network_weights(n), one = n->width * n->width;
    const size_t numbers = n->batch * n->width;
    const int own = (int)(numbers / load->nexperts);
    float *result = lesson_malloc(count * sizeof(float));
    float *expected = lesson_malloc(count * sizeof(float));
    float *tokens = lesson_malloc((size_t)own * sizeof(float));
    float *all = NULL, *all_tokens = NULL;
    CHECK_CUDA(
        cudaMemcpy(result, weights, count * sizeof(float), cudaMemcpyDeviceToHost));
    if (lesson_self().rank == 0) {
        all = lesson_malloc(load->nexperts * count * sizeof(float));
        all_tokens = lesson_malloc(numbers * sizeof(float));
        reference(n, load, capacity, all, all_tokens);
    }
    for (size_t l = 0; l < n->layers; l++)
        CHECK_MPI(MPI_Scatter(all ? all + l * load->nexperts * one : NULL, (int)one,
                              MPI_FLOAT, expected + l * one, (int)one, MPI_FLOAT, 0,
                              MPI_COMM_WORLD));
    CHECK_MPI(MPI_Scatter(all_tokens, own, MPI_FLOAT, tokens, own, MPI_FLOAT, 0,
                          MPI_COMM_WORLD));
    // Rounding errors of the weights go through every layer.
    const double bound =
        (double)(n->steps * n->layers) * sqrt((double)numbers) * ldexp(1, -23);
    int wrong = 0;
    for (int i = 0; i < own; i++)
        wrong += !(fabs((double)became[i] - tokens[i]) <= bound);
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (wrong > 0)
        lesson_fail(
            "%d numbers of the %zu tokens are not what their experts make of them", wrong,
            n->batch);
    if (lesson_self().rank == 0)
        printf("all %zu tokens are back in their places, with the right values\n",
               n->batch);
    const int exit_code = network_verdict(n, result, expected, count, false);
    free(all_tokens);
    free(all);
    free(tokens);
    free(expected);
    free(result);
    return exit_code;
}

#endif
