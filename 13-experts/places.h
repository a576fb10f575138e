/*
 * places.h: how experts sorts the tokens that leave. Each rank does this alone.
 */
#ifndef PLACES_H
#define PLACES_H

static const size_t dropped = SIZE_MAX; // the place of a token that got none

/* Sorts the tokens by expert: gives each its place among the tokens that leave, first all
 * for expert 0, then all for expert 1, and so on. With a capacity, each expert has that
 * many places, and tokens that find none are dropped. */
static void give_places(struct training *t, size_t step, size_t l) {
    const size_t first = step * t->n.batch + t->rank * t->share, nranks = t->nranks;
    size_t *next = lesson_malloc(2 * nranks * sizeof *next), *end = next + nranks;
    uint64_t *leave = t->leave[l];
    memset(leave, 0, nranks * sizeof *leave);
    for (size_t i = 0; i < t->share; i++)
        leave[load_expert(&t->load, step, l, first + i)]++;
    for (size_t e = 0; e < nranks; e++) {
        if (t->capacity)
            leave[e] = t->come[l][e] = t->capacity;
        next[e] = e == 0 ? 0 : end[e - 1];
        end[e] = next[e] + leave[e];
    }
    for (size_t i = 0; i < t->share; i++) {
        const size_t e = load_expert(&t->load, step, l, first + i);
        t->place[l][i] = next[e] < end[e] ? next[e]++ : dropped;
        t->ndropped += t->place[l][i] == dropped;
    }
    free(next);
}

/* Copies this rank's tokens to their places. Places that stay empty hold zeros. */
static void to_places(struct training *t, size_t l, const float *tokens) {
    const size_t w = t->n.width, one = w * sizeof(float), *place = t->place[l];
    CHECK_CUDA(cudaMemsetAsync(t->leaving, 0, t->nranks * t->capacity * one, t->stream));
    for (size_t i = 0; i < t->share; i++)
        if (place[i] != dropped)
            CHECK_CUDA(cudaMemcpyAsync(t->leaving + place[i] * w, tokens + i * w, one,
                                       cudaMemcpyDeviceToDevice, t->stream));
}

/* Copies the tokens that have come back from their places to where they were before. A
 * dropped token is copied from `without`. */
static void from_places(struct training *t, size_t l, float *tokens,
                        const float *without) {
    const size_t w = t->n.width, *place = t->place[l];
    for (size_t i = 0; i < t->share; i++) {
        const float *back =
            place[i] == dropped ? without + i * w : t->leaving + place[i] * w;
        CHECK_CUDA(cudaMemcpyAsync(tokens + i * w, back, w * sizeof(float),
                                   cudaMemcpyDeviceToDevice, t->stream));
    }
}

#endif
