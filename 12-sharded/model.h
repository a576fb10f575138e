/*
 * model.h: what sharded does with the whole model, before and after the training. It uses
 * the program's own functions.
 */
#ifndef MODEL_H
#define MODEL_H

#include "timing.h"

/* All ranks make the same initial weights (the seed is the same), and each keeps its
 * shards. The padding at the end of a layer is never used in a product. */
static void keep_shards(const struct training *t) {
    const struct network *n = &t->n;
    const size_t one = n->width * n->width, count = network_weights(n);
    // With room for the padding of the last layer.
    float *host = lesson_malloc((count + t->layer) * sizeof(float));
    memset(host + count, 0, t->layer * sizeof(float));
    network_first(n, 0, host);
    for (size_t l = 0; l < n->layers; l++)
        CHECK_CUDA(cudaMemcpyAsync(n->weight[l], host + l * one + t->rank * t->shard,
                                   t->shard * sizeof(float), cudaMemcpyHostToDevice,
                                   t->computing));
    free(host); // it is not pinned, so it has been read
}

/* Gathers the whole model into host memory, layer by layer, as you would to save it. */
static void gather_model(struct training *t, float *host) {
    const size_t one = t->n.width * t->n.width;
    for (size_t l = 0; l < t->n.layers; l++) {
        gather(t, l);
        wait_for(t, GATHERED + l % 2);
        CHECK_CUDA(cudaMemcpyAsync(host + l * one, weights(t, l), one * sizeof(float),
                                   cudaMemcpyDeviceToHost, t->computing));
    }
    CHECK_CUDA(cudaStreamSynchronize(t->computing));
}

/* Prints what the training has given, and compares the weights of all ranks with those
 * that one process gets. Returns the program's exit code.
 *   timed  also measure how long a step takes */
static int verdict(struct training *t, bool timed) {
    const struct network *n = &t->n;
    const size_t count = network_weights(n), sent = t->sent / n->steps;
    float *host = lesson_malloc(count * sizeof(float));
    gather_model(t, host);
    network_print_losses(n);
    network_check_copies(host, count, "after the last step", MPI_COMM_WORLD);
    report_kept(n->layers * t->layer, n->layers * t->shard, t->stage, t->kept,
                report_in_use(t->stage, t->layer));
    report_sent(sent, t->stage, n->layers * (t->nranks - 1) * t->shard * sizeof(float));
    if (timed)
        measure(t);
    float *expected = network_expected(n);
    const int exit_code = network_verdict(n, host, expected, count, t->nranks == 1);
    free(expected);
    free(host);
    return exit_code;
}

#endif
