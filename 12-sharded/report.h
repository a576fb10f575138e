/*
 * report.h: the options of sharded, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "network.h"

/* Reads the command line; the network's options go into `n`. */
static inline void report_options(int argc, char **argv, struct network *n, size_t *stage,
                                  bool *timed) {
    const struct lesson_option options[] = {
        {"--stage", "STAGE",
         "1 divides the momentum, 2 also the gradients, 3 also the weights",
         .number = stage, .usual = 3, .least = 1, .most = 3},
        {"--time", NULL, "how long a step takes, and how long without communication",
         .flag = timed},
        {0}};
    network_options(argc, argv, n, lesson_self().nranks, options);
}

/* The bytes that a rank keeps in a stage; stage 0 is lesson 10.
 *   whole, part  numbers in all layers, and in this rank's shards of them */
static inline size_t report_bytes(size_t stage, size_t whole, size_t part) {
    return sizeof(float) * ((stage < 3 ? whole : part) + (stage < 2 ? whole : part) +
                            (stage < 1 ? whole : part));
}

/* Bytes for whole layers that are computed with: two for each thing that is divided, the
 * momentum excepted, which nothing is computed with. */
static inline size_t report_in_use(size_t stage, size_t layer) {
    return (stage - 1) * 2 * layer * sizeof(float);
}

/* Ends the job unless the GPU has room for all that a rank needs.
 *   layer, shard  numbers in a layer with its padding, and in a shard
 *   share         samples that this rank takes in a step */
static inline void report_need(const struct network *n, size_t stage, size_t layer,
                               size_t shard, size_t share) {
    network_need(report_bytes(stage, n->layers * layer, n->layers * shard) +
                 report_in_use(stage, layer) + network_samples_bytes(n, share));
}

/* Prints the bytes that a rank keeps: by formula in all stages, and as allocated in
 * this one.
 *   in_use  those of the allocated bytes that are room for whole layers */
static inline void report_kept(size_t whole, size_t part, size_t stage, size_t allocated,
                               size_t in_use) {
    if (lesson_self().rank != 0)
        return;
    for (size_t s = 0; s <= 3; s++)
        printf("stage %zu: a rank keeps %10zu bytes%s\n", s, report_bytes(s, whole, part),
               s == 0 ? " (all of it, as in lesson 10)" : "");
    printf(
        "this is stage %zu:       %10zu bytes allocated, %zu of them for whole layers\n",
        stage, allocated, in_use);
}

/* Prints the bytes that a rank sends in a step: counted, and by formula.
 *   pass  bytes to gather or scatter every layer once */
static inline void report_sent(size_t sent, size_t stage, size_t pass) {
    const size_t passes = stage < 3 ? 2 : 3;
    if (lesson_self().rank == 0)
        printf("a rank sends %zu bytes a step, counted; %zu x L x (N - 1) shards = %zu;"
               " lesson 10: %zu\n",
               sent, passes, passes * pass, 2 * pass);
}

/* Prints the seconds of a step without communication and with it. */
static inline void report_times(double computing, double both) {
    if (lesson_self().rank == 0)
        printf("computing only   %9.3f ms a step\n"
               "both             %9.3f ms, %.3f of computing only\n",
               computing * 1e3, both * 1e3, both / computing);
}

/* All ranks make the same initial weights (the seed is the same), and each keeps its
 * shards. The padding at the end of a layer is never used in a product. */
static inline void report_first(const struct network *n, int rank, size_t shard,
                                size_t layer, cudaStream_t stream) {
    const size_t one = n->width * n->width, count = network_weights(n);
    // With room for the padding of the last layer.
    float *host = lesson_malloc((count + layer) * sizeof(float));
    memset(host + count, 0, layer * sizeof(float));
    network_first(n, 0, host);
    for (size_t l = 0; l < n->layers; l++)
        CHECK_CUDA(cudaMemcpyAsync(n->weight[l], host + l * one + (size_t)rank * shard,
                                   shard * sizeof(float), cudaMemcpyHostToDevice,
                                   stream));
    free(host); // it is not pinned, so it has been read
}

#endif
