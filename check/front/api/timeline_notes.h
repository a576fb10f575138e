/*
 * timeline_notes.h: calls and copies, as a timeline shows them.
 */
#ifndef TIMELINE_NOTES_H
#define TIMELINE_NOTES_H

#include "cuda_front.h"
#include "nccl_front.h"

/* A call of NCCL; `alone`: in no group. */
void note_call(const struct judge_call *call, const struct comm *comm, bool reduces,
               cudaStream_t stream, int device, bool alone);

#endif
