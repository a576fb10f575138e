/*
 * base.h: memory that is there or ends the program, arrays that grow, a map, numbers.
 */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Called when there is none any more: it may give some back. */
extern void (*memory_ends)(void);

void *must_alloc(size_t bytes); // zeroed
void *must_grow(void *memory, size_t bytes);

/* Room for element n of `array`, which has `*size` elements; new ones are zeroed. */
void *room_for(void *array, size_t n, size_t *size, size_t element);
#define ROOM(array, n, size) ((array) = room_for((array), (n), (size), sizeof *(array)))

/* Pieces of one size that come and go with every call: what is given back is kept for the
 * next. Guarded by the judge's lock. */
struct stock {
    void *first;
    size_t n;
};
void *stock_take(struct stock *stock, size_t bytes); // zeroed
void stock_give(struct stock *stock, void *piece);

/* From a number to a pointer. */
struct map {
    struct map_entry {
        uint64_t key;
        void *value; // NULL: empty
    } * at;
    size_t used, size; // size: a power of two, or 0
};
void *map_get(const struct map *map, uint64_t key);       // NULL: not there
void map_put(struct map *map, uint64_t key, void *value); // value NULL: takes it out
void map_free(struct map *map);
void map_clear(struct map *map, void (*value)(void *value)); // frees each value, too

/* Things by numbers that are given out, from 0 on. */
struct numbers {
    void **at; // NULL: given up, and to be given out again
    size_t n, size;
    int *free;
    size_t nfree, free_size;
};
int numbers_add(struct numbers *all, void *thing);
void *numbers_get(const struct numbers *all, int number); // NULL: not there
// frees the thing, too, if there is one
void numbers_drop(struct numbers *all, int number, void (*thing)(void *thing));
void numbers_clear(struct numbers *all, void (*thing)(void *thing)); // frees each, too

/* A number in which all bits of `x` and `y` are mixed. */
uint64_t mixed(uint64_t x, uint64_t y);
/* The same of bytes, and of what was hashed before them (FNV-1a). */
uint64_t hash_bytes(const void *data, size_t bytes, uint64_t before);

#endif
