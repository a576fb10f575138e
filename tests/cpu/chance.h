/* Numbers that look random and are the same on all ranks and in every run. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

static uint64_t chance_state;

/* The next number: 0 to n - 1. */
static inline int below(int n) {
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((chance_state >> 33) % (uint64_t)n);
}

/* Begins the sequence with this number. */
static inline void begin_chance(int number) {
    chance_state = (uint64_t)number;
    for (int i = 0; i < 10; i++) { // neighbours begin alike
        below(2);
    }
}

#endif
