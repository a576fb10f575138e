/*
 * model.h: the initial weights of experts, and the check of what the training has given.
 */
#ifndef MODEL_H
#define MODEL_H

#include "timing.h"

/* Each rank has its own expert: a different seed, different weights. */
static void first_weights(const struct training *t) {
    const size_t count = network_weights(&t->n);
    float *host = lesson_malloc(count * sizeof(float));
    network_first(&t->n, t->rank, host);
    CHECK_CUDA(cudaMemcpyAsync(t->expert.weight[0], host, count * sizeof(float),
                               cudaMemcpyHostToDevice, t->stream));
    free(host); // it is not pinned, so it has been read
}

/* In the last step, copies the output for this rank's tokens, before the loss replaces it
 * by the gradient. */
static void keep_output(struct training *t, size_t step) {
    const struct network *n = &t->n;
    const size_t bytes = t->share * n->width * sizeof(float);
    if (step + 1 < n->steps)
        return;
    t->output = lesson_malloc(bytes);
    CHECK_CUDA(cudaMemcpyAsync(t->output, n->activation[n->layers], bytes,
                               cudaMemcpyDeviceToHost, t->stream));
}

/* Prints what the training has given, and compares this rank's weights and the kept
 * output with those of one process. Returns the program's exit code. timed  also measure
 * how long a layer's tokens travel */
static int verdict(struct training *t, bool timed) {
    const struct network *n = &t->n;
    const size_t count = network_weights(n), capacity = t->capacity;
    float *result = lesson_malloc(count * sizeof(float));
    CHECK_CUDA(cudaMemcpy(result, t->expert.weight[0], count * sizeof(float),
                          cudaMemcpyDeviceToHost));
    network_print_losses(n);
    reference_report(n, &t->load, capacity, t->sent, t->ndropped);
    if (timed)
        measure(t); // may change t->capacity
    float *expected = reference_expected(n, &t->load, capacity, t->output);
    const int exit_code = network_verdict(n, result, expected, count, capacity == 0);
    free(expected);
    free(result);
    free(t->output);
    return exit_code;
}

#endif
