/*
 * report.h: the options of pipeline, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "network.h"

struct asked {
    size_t micro;            // micro-batches in a step
    bool all_forward, timed; // --all-forward, --time
};

/* Reads the command line; the network's options go into `whole`. */
static inline struct asked report_options(int argc, char **argv, struct network *whole) {
    const size_t nranks = (size_t)lesson_self().nranks;
    struct asked asked = {0};
    const struct lesson_option options[] = {
        {"--micro", "M", "micro-batches per step", .number = &asked.micro, .usual = 8,
         .least = 1, .most = 4096},
        {"--all-forward", NULL,
         "first all forward, then all backward (default: in turns)",
         .flag = &asked.all_forward},
        {"--time", NULL, "how long a step takes, and how much of it is idle",
         .flag = &asked.timed},
        {0}};
    whole->layers = nranks > 8 ? nranks : 8;
    network_options(argc, argv, whole, 1, options);
    if (whole->layers < nranks)
        network_misused(argv[0], "--layers %zu is less than one for each of %zu ranks",
                        whole->layers, nranks);
    if (whole->batch % asked.micro != 0)
        network_misused(argv[0], "--batch %zu does not divide into %zu micro-batches",
                        whole->batch, asked.micro);
    return asked;
}

/* Prints what each rank has and does, and what the formulas say.
 *   n      this rank's layers, of which `first` is the first
 *   ahead  micro-batches that it keeps, of `micro`
 *   sent   bytes that it sends in a step */
static inline void report_work(const struct network *n, size_t first, size_t ahead,
                               size_t micro, size_t sent) {
    const struct lesson_self self = lesson_self();
    const int last = self.nranks - 1;
    char line[256];
    snprintf(
        line, sizeof line,
        "rank %d: layers %zu to %zu; keeps %zu of %zu micro-batches; sends %zu bytes",
        self.rank, first, first + n->layers - 1, ahead, micro, sent);
    lesson_print_in_order(line);
    if (self.rank == 0)
        printf("B x W x 4 = %zu bytes a step to each neighbour\n"
               "(N-1)/(M+N-1) = %.2f of a step is idle, by formula\n",
               n->batch * n->width * sizeof(float), last / (double)(micro + last));
}

/* Prints the seconds of a step, and of its computing alone. */
static inline void report_times(double step, double alone) {
    if (lesson_self().rank == 0)
        printf("a step %.3f ms, computing %.3f ms: %.2f of a step is idle, measured\n",
               step * 1e3, alone * 1e3, 1 - alone / step);
}

/* Initial weights: those of this rank's layers. */
static inline void report_first(const struct network *whole, const struct network *n,
                                size_t first, cudaStream_t stream) {
    float *host = lesson_malloc(network_weights(whole) * sizeof(float));
    network_first(whole, 0, host);
    CHECK_CUDA(cudaMemcpyAsync(n->weight[0], host + first * n->width * n->width,
                               network_weights(n) * sizeof(float), cudaMemcpyHostToDevice,
                               stream));
    free(host); // it is not pinned, so it has been read
}

/* Compares `result`, the weights of this rank's layers, with those that one process gets.
 * Each weight is on one rank only, so there are no copies to keep equal. Returns the
 * program's exit code. */
static inline int report_verdict(const struct network *whole, const struct network *n,
                                 size_t first, size_t micro, const float *result) {
    float *expected = network_expected(whole);
    // With one micro-batch the products are those of one process, bit for bit. (If 4 does
    // not divide the width, cuBLAS may use other kernels for unaligned layers.)
    const bool exact = micro == 1 && n->width % 4 == 0;
    const int exit_code = network_verdict(
        whole, result, expected + first * n->width * n->width, network_weights(n), exact);
    free(expected);
    return exit_code;
}

#endif
