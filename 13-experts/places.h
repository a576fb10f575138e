/*
 * places.h: which expert a token chooses, and how experts sorts the tokens that leave.
 * Each rank does this alone.
 */
#ifndef PLACES_H
#define PLACES_H

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

static const size_t dropped = SIZE_MAX; // the place of a token that got none

/* Sorts the tokens first … first+share-1 by expert: gives each its place among the tokens
 * that leave, first all for expert 0, then all for expert 1, and so on. With a capacity,
 * each expert has that many places, and tokens that find none are dropped. Returns how
 * many.
 *   leave  how many places each expert has, for the caller */
static inline size_t give_places(const struct load *load, size_t step, size_t l,
                                 size_t first, size_t share, size_t capacity,
                                 uint64_t *leave, size_t *place) {
    const size_t n = load->nexperts;
    size_t *next = lesson_malloc(2 * n * sizeof *next), *end = next + n, ndropped = 0;
    memset(leave, 0, n * sizeof *leave);
    for (size_t i = 0; i < share; i++)
        leave[load_expert(load, step, l, first + i)]++;
    for (size_t e = 0; e < n; e++) {
        if (capacity)
            leave[e] = capacity;
        next[e] = e == 0 ? 0 : end[e - 1];
        end[e] = next[e] + leave[e];
    }
    for (size_t i = 0; i < share; i++) {
        const size_t e = load_expert(load, step, l, first + i);
        place[i] = next[e] < end[e] ? next[e]++ : dropped;
        ndropped += place[i] == dropped;
    }
    free(next);
    return ndropped;
}

/* Copies tokens of `bytes` each to their places among those that leave. With a capacity,
 * there are `capacities` places in all, and those that stay empty hold zeros. */
static inline void to_places(const size_t *place, size_t share, const float *tokens,
                             size_t bytes, float *leaving, size_t capacities,
                             cudaStream_t stream) {
    const size_t w = bytes / sizeof(float);
    CHECK_CUDA(cudaMemsetAsync(leaving, 0, capacities * bytes, stream));
    for (size_t i = 0; i < share; i++)
        if (place[i] != dropped)
            CHECK_CUDA(cudaMemcpyAsync(leaving + place[i] * w, tokens + i * w, bytes,
                                       cudaMemcpyDeviceToDevice, stream));
}

/* Copies the tokens that have come back from their places to where they were before. A
 * dropped token is copied from `without`. */
static inline void from_places(const size_t *place, size_t share, float *tokens,
                               size_t bytes, const float *back, const float *without,
                               cudaStream_t stream) {
    const size_t w = bytes / sizeof(float);
    for (size_t i = 0; i < share; i++)
        CHECK_CUDA(cudaMemcpyAsync(
            tokens + i * w, place[i] == dropped ? without + i * w : back + place[i] * w,
            bytes, cudaMemcpyDeviceToDevice, stream));
}

#endif
