/*
 * reference.h: what lesson 13 needs and does not teach: its options, which expert a token
 * chooses, and the same training in one process, with all experts and all tokens.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "network.h"

/* In real models a small network, the router, chooses; here it is a rule. */
enum { LOAD_EVEN, LOAD_UNEVEN, LOAD_EMPTY, LOAD_ONE, LOADS };
static const char *const load_names[] = {"even", "uneven", "empty", "one", NULL};

struct load {
    bool chosen[LOADS]; // if several, they take turns, step by step
    size_t nexperts;
};

/* The expert of a token in a layer. It depends on the token's number in the whole data
 * set, the step and the layer. */
static inline size_t load_expert(const struct load *load, size_t step, size_t layer,
                                 size_t token) {
    int turns[LOADS] = {LOAD_UNEVEN}, nturns = 0;
    for (int i = 0; i < LOADS; i++)
        if (load->chosen[i])
            turns[nturns++] = i;
    // From 0 to nearly 1; small values are more frequent.
    double u = (network_number(step * NETWORK_LAYERS + layer, token) + 1.0) / 2;
    u *= u;
    switch (turns[nturns ? step % (size_t)nturns : 0]) {
    case LOAD_EVEN: return (token + layer) % load->nexperts;
    case LOAD_EMPTY: return 2 * (size_t)(u * (double)((load->nexperts + 1) / 2));
    case LOAD_ONE: return layer % load->nexperts;
    default: return (size_t)(u * (double)load->nexperts);
    }
}

/* Reads the command line; the network's options go into `n`. */
static inline void reference_options(int argc, char **argv, struct network *n,
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

static inline void reference_copy(float *to, const float *from, size_t w) {
    CHECK_CUDA(
        cudaMemcpyAsync(to, from, w * sizeof(float), cudaMemcpyDeviceToDevice, NULL));
}

/* Trains all experts in this process.
 *   like      the network of one expert
 *   capacity  of each expert, for the tokens of one rank; 0: there is no limit
 *   weights   of all experts after the last step, expert after expert
 *   tokens    the output for the last step's tokens; both in host memory */
static inline void reference(const struct network *like, const struct load *load,
                             size_t capacity, float *weights, float *tokens) {
    struct network n = *like;
    const size_t w = n.width, one = w * w, model = network_weights(&n), batch = n.batch;
    const size_t nexperts = load->nexperts, bytes = nexperts * model * sizeof(float);
    size_t *expert = lesson_malloc(batch * sizeof *expert);
    size_t *taken = lesson_malloc(nexperts * sizeof *taken);
    float *weight, *gradient, *momentum, *x, *y;
    cublasHandle_t blas;
    network_need(3 * bytes + network_samples_bytes(&n, batch + batch));
    CHECK_CUDA(cudaMalloc((void **)&weight, bytes));
    CHECK_CUDA(cudaMalloc((void **)&gradient, bytes));
    CHECK_CUDA(cudaMalloc((void **)&momentum, bytes));
    CHECK_CUDA(cudaMalloc((void **)&x, batch * w * sizeof(float)));
    CHECK_CUDA(cudaMalloc((void **)&y, batch * w * sizeof(float)));
    CHECK_CUDA(cudaMemset(momentum, 0, bytes));
    network_malloc_samples(&n, batch);
    CHECK_CUBLAS(cublasCreate(&blas));
    for (size_t e = 0; e < nexperts; e++)
        network_first(&n, e, weights + e * model);
    CHECK_CUDA(cudaMemcpy(weight, weights, bytes, cudaMemcpyHostToDevice));

    for (size_t step = 0; step < n.steps; step++) {
        network_load(&n, step * batch, batch, NULL);
        // Twice through the layers: forward, then backward.
        for (size_t use = 0; use < 2 * n.layers; use++) {
            const bool forward = use < n.layers;
            const size_t l = forward ? use : 2 * n.layers - 1 - use;
            float *in = n.activation[l], *out = n.activation[l + 1];
            for (size_t i = 0; i < batch; i++) {
                if (i % (batch / nexperts) == 0) // the first token of a rank
                    memset(taken, 0, nexperts * sizeof *taken);
                expert[i] = load_expert(load, step, l, step * batch + i);
                if (capacity && taken[expert[i]]++ >= capacity) {
                    expert[i] = nexperts; // dropped: it stays as it is
                    reference_copy((forward ? out : in) + i * w,
                                   (forward ? in : out) + i * w, w);
                }
            }
            for (size_t e = 0; e < nexperts; e++) {
                float *mine = weight + e * model + l * one;
                float *slope = gradient + e * model + l * one;
                size_t count = 0, back = 0;
                for (size_t i = 0; i < batch; i++)
                    if (expert[i] == e) {
                        reference_copy(x + count * w, in + i * w, w);
                        reference_copy(y + count++ * w, out + i * w, w);
                    }
                if (forward)
                    network_forward(blas, w, w, count, mine, x, y);
                else if (count == 0)
                    CHECK_CUDA(cudaMemset(slope, 0, one * sizeof(float)));
                else
                    network_gradient(blas, w, w, count, x, y, false, slope);
                if (!forward && l > 0)
                    network_backward(blas, w, w, count, mine, y, x);
                for (size_t i = 0; i < batch; i++)
                    if (expert[i] == e)
                        reference_copy((forward ? out : in) + i * w,
                                       (forward ? y : x) + back++ * w, w);
            }
            if (use + 1 == n.layers) {
                CHECK_CUDA(cudaMemcpy(tokens, out, batch * w * sizeof(float),
                                      cudaMemcpyDeviceToHost));
                network_loss(blas, w, batch, batch, out, n.wanted, &n.distance[step]);
            }
        }
        network_update(blas, &n, nexperts * model, gradient, momentum, weight);
    }
    CHECK_CUDA(cudaMemcpy(weights, weight, bytes, cudaMemcpyDeviceToHost));
    CHECK_CUBLAS(cublasDestroy(blas));
    network_free_samples(&n);
    CHECK_CUDA(cudaFree(y));
    CHECK_CUDA(cudaFree(x));
    CHECK_CUDA(cudaFree(momentum));
    CHECK_CUDA(cudaFree(gradient));
    CHECK_CUDA(cudaFree(weight));
    free(taken);
    free(expert);
}

/* Prints how many tokens an expert computes in a layer, at least and at most, how many
 * were dropped, and how many bytes were sent. sent, dropped  bytes and tokens of this
 * rank in all steps */
static inline void reference_report(const struct network *n, const struct load *load,
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
static inline size_t reference_largest(const uint64_t *leave, size_t nranks) {
    uint64_t largest = 1;
    for (size_t e = 0; e < nranks; e++)
        largest = leave[e] > largest ? leave[e] : largest;
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
    return largest;
}

/* Prints how long a layer's tokens took there and back, with counts first and padded. */
static inline void reference_times(const struct network *n, size_t nranks,
                                   size_t capacity, double counted, double padded) {
    const size_t token = 2 * n->width * sizeof(float);
    if (lesson_self().rank == 0)
        printf("counts first %9.3f ms a layer, there and back; all ranks send %zu bytes\n"
               "padded       %9.3f ms, %.3f of that; capacity %zu, so %zu bytes\n",
               counted * 1e3, n->batch * token, padded * 1e3, padded / counted, capacity,
               nranks * nranks * capacity * token);
}

/* The weights that this rank's expert should end with: rank 0 trains all experts, and MPI
 * carries the weights to the ranks. In host memory; the caller frees it. Ends the job
 * unless this rank's tokens are back in their places with the right values.
 *   became  the output for this rank's tokens of the last step, in host memory */
static inline float *reference_expected(const struct network *n, const struct load *load,
                                        size_t capacity, const float *became) {
    const size_t model = network_weights(n), numbers = n->batch * n->width;
    const int own = (int)(numbers / load->nexperts);
    float *expected = lesson_malloc(model * sizeof *expected);
    float *tokens = lesson_malloc((size_t)own * sizeof *tokens);
    float *all = NULL, *all_tokens = NULL;
    if (lesson_self().rank == 0) {
        all = lesson_malloc(load->nexperts * model * sizeof *all);
        all_tokens = lesson_malloc(numbers * sizeof *all_tokens);
        reference(n, load, capacity, all, all_tokens);
    }
    CHECK_MPI(MPI_Scatter(all, (int)model, MPI_FLOAT, expected, (int)model, MPI_FLOAT, 0,
                          MPI_COMM_WORLD));
    CHECK_MPI(MPI_Scatter(all_tokens, own, MPI_FLOAT, tokens, own, MPI_FLOAT, 0,
                          MPI_COMM_WORLD));
    // Equal bit for bit. But with zeros between the tokens a gradient may be added up in
    // a different order, and the rounding errors of the weights go through every layer.
    const double bound = capacity == 0 ? 0
                                       : (double)(n->steps * n->layers) *
                                             sqrt((double)numbers) * ldexp(1, -23);
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
    free(all_tokens);
    free(all);
    free(tokens);
    return expected;
}

#endif
