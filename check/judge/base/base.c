/*
 * base.c: memory that is there or ends the program, arrays that grow, a map, numbers.
 */
#include "base/base.h"

#include <stdio.h>

void (*memory_ends)(void);

static void *there(void *memory) {
    if (!memory) {
        fprintf(stderr, "NCCL CHECK: out of host memory\n");
        abort();
    }
    return memory;
}

void *must_alloc(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory && memory_ends) {
        memory_ends();
        memory = calloc(1, bytes ? bytes : 1);
    }
    return there(memory);
}

void *must_grow(void *memory, size_t bytes) {
    void *larger = realloc(memory, bytes ? bytes : 1);
    if (!larger && memory_ends) {
        memory_ends();
        larger = realloc(memory, bytes ? bytes : 1);
    }
    return there(larger);
}

void *room_for(void *array, size_t n, size_t *size, size_t element) {
    if (n < *size)
        return array;
    size_t more = n < 8 ? 8 : 2 * n;
    array = must_grow(array, more * element);
    memset((char *)array + *size * element, 0, (more - *size) * element);
    *size = more;
    return array;
}

void *stock_take(struct stock *stock, size_t bytes) {
    void *piece = stock->first;
    if (!piece)
        return must_alloc(bytes);
    memcpy(&stock->first, piece, sizeof stock->first);
    stock->n--;
    return memset(piece, 0, bytes);
}

void stock_give(struct stock *stock, void *piece) {
    enum { KEPT = 4096 };
    if (stock->n == KEPT) {
        free(piece);
        return;
    }
    memcpy(piece, &stock->first, sizeof stock->first);
    stock->first = piece;
    stock->n++;
}

uint64_t mixed(uint64_t x, uint64_t y) {
    x *= 0x9e3779b97f4a7c15u;
    x = ((x ^ x >> 32) + y) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 29) * 0x94d049bb133111ebu;
    return x ^ x >> 32;
}

uint64_t hash_bytes(const void *data, size_t bytes, uint64_t before) {
    const unsigned char *at = data;
    uint64_t h = before ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

static size_t place_of(const struct map *map, uint64_t key) {
    size_t at = (size_t)mixed(key, 0) & (map->size - 1);
    while (map->at[at].value && map->at[at].key != key)
        at = (at + 1) & (map->size - 1);
    return at;
}

void *map_get(const struct map *map, uint64_t key) {
    return map->size ? map->at[place_of(map, key)].value : NULL;
}

static void take_out(struct map *map, size_t gap) {
    map->used--;
    map->at[gap].value = NULL;
    // What stood after it may have been pushed there by it.
    for (size_t at = gap;;) {
        at = (at + 1) & (map->size - 1);
        struct map_entry entry = map->at[at];
        if (!entry.value)
            return;
        map->at[at].value = NULL;
        map->at[place_of(map, entry.key)] = entry;
    }
}

void map_put(struct map *map, uint64_t key, void *value) {
    if (2 * (map->used + 1) > map->size) {
        struct map wider = {.size = map->size ? 2 * map->size : 16, .used = map->used};
        wider.at = must_alloc(wider.size * sizeof *wider.at);
        for (size_t i = 0; i < map->size; i++)
            if (map->at[i].value)
                wider.at[place_of(&wider, map->at[i].key)] = map->at[i];
        free(map->at);
        *map = wider;
    }
    size_t at = place_of(map, key);
    if (!value) {
        if (map->at[at].value)
            take_out(map, at);
        return;
    }
    map->used += !map->at[at].value;
    map->at[at] = (struct map_entry){key, value};
}

void map_clear(struct map *map, void (*value)(void *value)) {
    for (size_t i = 0; i < map->size; i++)
        if (map->at[i].value)
            value(map->at[i].value);
    map_free(map);
}

void map_free(struct map *map) {
    free(map->at);
    *map = (struct map){0};
}

int numbers_add(struct numbers *all, void *thing) {
    int number = all->nfree ? all->free[--all->nfree] : (int)all->n++;
    ROOM(all->at, (size_t)number, &all->size);
    all->at[number] = thing;
    return number;
}

void *numbers_get(const struct numbers *all, int number) {
    return number >= 0 && (size_t)number < all->n ? all->at[number] : NULL;
}

void numbers_drop(struct numbers *all, int number, void (*thing)(void *thing)) {
    void *dropped = numbers_get(all, number);
    if (!dropped)
        return;
    thing(dropped);
    all->at[number] = NULL;
    ROOM(all->free, all->nfree, &all->free_size);
    all->free[all->nfree++] = number;
    if (all->nfree == all->n)
        all->n = all->nfree = 0;
}

void numbers_clear(struct numbers *all, void (*thing)(void *thing)) {
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i])
            thing(all->at[i]);
    free(all->at);
    free(all->free);
}
