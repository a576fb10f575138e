/*
 * later.h: calls that NCCL puts into their streams later.
 */
#ifndef LATER_H
#define LATER_H

#include "judge.h"

struct later;
/* Calls that return before NCCL has put them into their streams (blocking = 0). One that
 * was called, and what it returned; its communicator is ready. */
void later_free(struct later *later);
void later_called(struct judge *j, const struct judge_call *call);
void later_comm_ready(struct judge *j, int comm);
/* The stream is asked, and has done all. That too may come too early, but NCCL's manual
 * has a loop that asks the stream first ("Asynchronous errors and error handling"). */
void later_asked(struct judge *j, int stream);
/* Whoever uses the stream, the device (-1: all) or the communicator meanwhile is named.
 */
void later_uses_stream(struct judge *j, int stream, struct judge_at at);
void later_uses_device(struct judge *j, int device, struct judge_at at);
void later_uses_comm(struct judge *j, int comm, struct judge_at at);

#endif
