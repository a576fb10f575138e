/*
 * places.h: many lines at once.
 */
#ifndef PLACES_H
#define PLACES_H

#include "judge.h"

/* Of sites in ascending order; "" where none is known. */
void places_of(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]);

#endif
