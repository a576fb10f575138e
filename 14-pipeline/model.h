/*
 * model.h: what pipeline does with the weights before and after the training. Each weight
 * is on one rank only, so there are no copies to keep equal.
 */
#ifndef MODEL_H
#define MODEL_H

#include "timing.h"

/* Initial weights: those of this rank's layers. */
static void first_weights(const struct pipeline *p) {
    const size_t skipped = p->first * p->n.width * p->n.width;
    float *host = lesson_malloc(network_weights(&p->whole) * sizeof(float));
    network_first(&p->whole, 0, host);
    CHECK_CUDA(cudaMemcpyAsync(p->n.weight[0], host + skipped,
                               network_weights(&p->n) * sizeof(float),
                               cudaMemcpyHostToDevice, p->stream));
    free(host); // it is not pinned, so it has been read
}

/* Prints what the training has given, and compares this rank's weights with those that
 * one process gets. Returns the program's exit code.
 *   timed  also measure how long a step takes */
static int verdict(struct pipeline *p, bool timed) {
    const struct network *n = &p->n;
    const size_t weights = network_weights(n);
    float *result = lesson_malloc(weights * sizeof(float));
    CHECK_CUDA(cudaMemcpy(result, n->weight[0], weights * sizeof(float),
                          cudaMemcpyDeviceToHost));
    network_print_distances(n, p->data.distance, p->micro);
    report_work(n, p->first, p->ahead, p->micro, p->sent / n->steps);
    if (timed)
        measure(p);
    float *expected = network_expected(&p->whole);
    // With one micro-batch the products are those of one process, bit for bit. (If 4 does
    // not divide the width, cuBLAS may use other kernels for unaligned layers.)
    const bool exact = p->micro == 1 && n->width % 4 == 0;
    const int exit_code = network_verdict(
        &p->whole, result, expected + p->first * n->width * n->width, weights, exact);
    free(expected);
    free(result);
    return exit_code;
}

#endif
