/*
 * place.h: the line that a call stands in.
 */
#ifndef PLACE_H
#define PLACE_H

#include "judge.h"

/* Where a call returns to. */
struct front_caller {
    uint64_t site;
    bool theirs; // a library's below
};
struct front_caller front_caller(void *return_address);
uint64_t front_site(void *return_address);
bool front_site_in_program(uint64_t site); // and not in a library that it has loaded
void front_place(void *self, uint64_t site, char out[JUDGE_PLACE]);
/* The line of the program that has led to the instruction `at`: the first frame there or
 * above that is not of a library, nor of a header (std::fill). */
uint64_t front_program_frame(const char *at, void *const *frames, int n);

/* How it is found, for the timeline, which looks many up at once. */
enum { FILE_SHIFT = 38 };
struct place_file {
    uint64_t tag;
    char path[4096]; // "": a library of another rank that is not here
};
struct place_file place_file_of(uint64_t site);
uint64_t place_offset(uint64_t site);                           // in its file
bool place_ask(char *const *arguments, char *out, size_t size); // addr2line
bool place_choose(char *lines, char function[128], char place[JUDGE_PLACE]);

extern struct place_file place_program; // of this rank
void place_begins(void);
void place_knows(const struct place_file *program); // another rank's

#endif
