/*
 * windows.h: what windows.c knows of the buffers that are symmetric windows.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "../judge.h"

/* All of these between front_in and front_out. `comm`, `window`: NCCL's handles. */
void windows_made(const void *comm, const void *window, const void *buffer, size_t bytes);
void windows_gone(const void *comm, const void *window); // NULL: all of the communicator
/* Sets the call's offsets; of `rank` of `nranks`. */
void windows_place(const void *comm, int rank, struct judge_call *call);

#endif
