/*
 * report.h: the options of experts, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "places.h"

/* Reads the command line; the network's options go into `n`. */
static inline void report_options(int argc, char **argv, struct network *n,
                                  struct load *load, size_t *capacity, bool *timed) {
    const struct lesson_option options[] = {
        {"--load", "LOAD",
         "how tokens choose (default uneven); several take turns, step by step:",
         .names = load_names, .chosen = load->chosen},
        {"--capacity", "C", "tokens of a rank that each expert takes (0: no limit)",
         .number = capacity, .most = 1 << 20},
        {"--time", NULL, "how long a layer's tokens travel, there and back",
         .flag = timed},
        {0}};
    network_options(argc, argv, n, lesson_self().nranks, options);
}

/* Each rank has its own expert: a different seed, different initial weights. */
static inline void report_first(const struct network *n, int rank, float *weights,
                                cudaStream_t stream) {
    const size_t count = network_weights(n);
    float *host = lesson_malloc(count * sizeof(float));
    network_first(n, (uint64_t)rank, host);
    CHECK_CUDA(cudaMemcpyAsync(weights, host, count * sizeof(float),
                               cudaMemcpyHostToDevice, stream));
    free(host); // it is not pinned, so it has been read
}

/* Prints how many tokens an expert computes in a layer, at least and at most, how many
 * were dropped, and how many bytes were sent. sent, dropped  bytes and tokens of this
 * rank in all steps */
static inline void report_tokens(const struct network *n, const struct load *load,
                                 size_t capacity, size_t sent, size_t dropped) {
    const size_t nexperts = load->nexperts;
    const size_t places = capacity ? nexperts * nexperts * capacity : n->batch;
    size_t *count = lesson_malloc(nexperts * sizeof *count);
    size_t fewest = SIZE_MAX, most = 0;
    for (size_t at = 0; at < n->steps * n->layers; at++) {
        const size_t step = at / n->layers, l = at % n->layers;
        memset(count, 0, nexperts * sizeof *count);
        for (size_t i = 0; i < n->batch; i++)
            count[load_expert(load, step, l, step * n->batch + i)]++;
        for (size_t e = 0; e < nexperts; e++) {
            const size_t computed = capacity ? nexperts * capacity : count[e];
            fewest = computed < fewest ? computed : fewest;
            most = computed > most ? computed : most;
        }
    }
    free(count);
    uint64_t sums[2] = {sent, dropped};
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (lesson_self().rank == 0)
        printf("an expert computes %zu to %zu tokens in a layer; dropped: %zu of %zu\n"
               "all ranks send %zu bytes a step, counted; (4 L - 1) x %s x W x 4 = %zu\n",
               fewest, most, (size_t)sums[1], n->batch * n->layers * n->steps,
               (size_t)sums[0] / n->steps, capacity ? "N x N x C" : "B",
               (4 * n->layers - 1) * places * n->width * sizeof(float));
}

/* The largest number of tokens that any rank has for one expert. */
static inline size_t report_largest(const uint64_t *leave, size_t nranks) {
    uint64_t largest = 1;
    for (size_t e = 0; e < nranks; e++)
        largest = leave[e] > largest ? leave[e] : largest;
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
    return largest;
}

/* Prints how long a layer's tokens took there and back, with counts first and padded. */
static inline void report_times(const struct network *n, size_t nranks, size_t capacity,
                                double counted, double padded) {
    const size_t token = 2 * n->width * sizeof(float);
    if (lesson_self().rank == 0)
        printf("counts first %9.3f ms a layer, there and back; all ranks send %zu bytes\n"
               "padded       %9.3f ms, %.3f of that; capacity %zu, so %zu bytes\n",
               counted * 1e3, n->batch * token, padded * 1e3, padded / counted, capacity,
               nranks * nranks * capacity * token);
}

#endif
