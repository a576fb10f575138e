/*
 * places.h: how experts sorts the tokens that leave. Each rank does this alone.
 */
#ifndef PLACES_H
#define PLACES_H

/* Sorts the tokens by expert: gives each its place among the tokens that leave, first all
 * for expert 0, then all for expert 1, and so on. With a capacity, each expert has that
 * many places, and tokens that find none are dropped. */
static void give_places(struct training *t, size_t step, size_t l) {
    const struct road *road = &t->roads[l];
    const size_t first = step * t->n.batch + t->rank * t->share, nranks = t->nranks;
    size_t *next = lesson_malloc(2 * nranks * sizeof *next), *end = next + nranks;
    memset(road->leave, 0, nranks * sizeof *road->leave);
    for (size_t i = 0; i < t->share; i++)
        road->leave[load_expert(&t->load, step, l, first + i)]++;
    for (size_t e = 0; e < nranks; e++) {
        if (t->capacity)
            road->leave[e] = t->capacity;
        next[e] = e == 0 ? 0 : end[e - 1];
        end[e] = next[e] + road->leave[e];
    }
    for (size_t i = 0; i < t->share; i++) {
        const size_t e = load_expert(&t->load, step, l, first + i);
        road->place[i] = next[e] < end[e] ? next[e]++ : dropped;
        t->ndropped += road->place[i] == dropped;
    }
    free(next);
}

#endif
