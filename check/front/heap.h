/*
 * heap.h: memory of the program's own that is given back.
 */
#ifndef HEAP_H
#define HEAP_H

#include "front.h"

enum heap_why {
    HEAP_REGISTERED, // cudaHostRegister
    HEAP_ARGUMENT,   // of a function that is queued on a stream
    HEAP_GRAPH       // of what a graph does, perhaps once more
};

/* These bytes have to live from now on, until heap_done. NULL: nobody looks after them.
 */
struct heap_need *heap_needs(enum heap_why why, const void *start, size_t bytes,
                             struct judge_at at);
void heap_done(struct heap_need *need); // NULL: nothing
/* Inside front_in: whether they were given back, and where. */
bool heap_given_back(const struct heap_need *need, struct judge_at *at);
struct heap_need *heap_registered(const void *start); // what heap_needs returned for it
void heap_forget(void); // nobody needs anything any more, but for graphs

#endif
