/*
 * background.h: calls that NCCL puts into their streams later.
 */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include "judge.h"

struct background;
/* Calls that return before NCCL has put them into their streams (blocking = 0). One that
 * was called, and what it returned; its communicator is ready. */
struct background *background_new(void);
void background_free(struct background *background);
void background_called(struct judge *j, const struct judge_call *call);
void background_comm_ready(struct judge *j, int comm);
/* The stream is asked, and has done all. That too may come too early, but NCCL's manual
 * has a loop that asks the stream first ("Asynchronous errors and error handling"). */
void background_asked(struct judge *j, int stream);
/* Whoever uses the stream, the device (-1: all) or the communicator meanwhile is named.
 */
void background_uses_stream(struct judge *j, int stream, struct judge_at at);
void background_uses_device(struct judge *j, int device, struct judge_at at);
void background_uses_comm(struct judge *j, int comm, struct judge_at at);

#endif
