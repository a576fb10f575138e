/*
 * place.h: the line that a call stands in.
 */
#ifndef PLACE_H
#define PLACE_H

#include "judge.h"

uint64_t front_site(void *return_address);
bool front_site_in_program(uint64_t site); // and not in a library that it has loaded
bool front_theirs(void *return_address);   // a library's below
void front_place(void *self, uint64_t site, char out[JUDGE_PLACE]);
/* Many lines at once, of sites in ascending order; "" where none is known. */
void front_places(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]);
/* The line of the program that has led to the instruction `at`: the first frame there or
 * above that is not of a library, nor of a header (std::fill). */
uint64_t front_program_frame(const char *at, void *const *frames, int n);

#endif
