/*
 * pages.h: pages of pinned and managed memory, which are closed while an operation uses
 * them. All but the first and the last between front_in and front_out.
 */
#ifndef PAGES_H
#define PAGES_H

#include "judge.h"

void pages_install(void); // or again, if a library has taken its signal
/* judge_outside.host_memory */
void pages_changed(void *self, const void *allocation, const struct judge_range *range);
void pages_made(void *start, size_t bytes); // pinned or managed memory
/* Its pages are opened for good: it is about to be given back; others use it unseen (a
 * window of MPI), or its pages have other bytes, too (cudaHostRegister). */
void pages_gone(const void *address);
void pages_forked(void); // in a process that was forked off, which has no judge
/* A call of MPI that has the program's buffers now; NULL: none. */
void pages_mpi_call(const struct judge_at *at);

#endif
