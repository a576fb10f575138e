/*
 * nccl_registered.h: what nccl_registered.c knows of the buffers that are registered with
 * communicators.
 */
#ifndef NCCL_REGISTERED_H
#define NCCL_REGISTERED_H

#include "judge.h"

/* All of these between front_in and front_out. `comm`, `handle`: NCCL's handles.
 * `symmetric`: a window with NCCL_WIN_COLL_SYMMETRIC. */
void registered_add(const void *comm, const void *handle, const void *buffer,
                    size_t bytes, bool symmetric, uint64_t number, struct judge_at at);
void registered_gone(const void *comm, const void *handle); // NULL: all of its
/* Takes one out, to be freed or given back; NULL: it is not known. */
struct registration *registered_take(const void *comm, const void *handle);
void registered_back(struct registration *one);
uint64_t registered_number(const struct registration *one); // the judge's; 0: no window
/* Where a window was registered. */
bool registered_window(const void *comm, const void *handle, struct judge_put *put);
/* Sets what the call's buffers are; of `rank` of `nranks`. */
void registered_place(const void *comm, int rank, struct judge_call *call);
/* Memory that starts there is about to be freed. */
void registered_freed(struct judge *j, const void *start, struct judge_at at);

#endif
