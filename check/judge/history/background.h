/*
 * background.h: calls that NCCL puts into their streams later.
 */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include "judge.h"

/* Calls that return before NCCL has put them into their streams (blocking = 0). One that
 * was called, and what it returned; its communicator is ready. */
struct background {
    struct in_background {
        const struct thread *thread; // that waits for the answer; NULL: it is on the way
        int comm, stream;            // stream -1: of a call that has none
        struct judge_at at;
    } * at;
    size_t n, size;
};
void background_called(struct judge *j, const struct judge_call *call);
/* The communicator is ready (or `stream` says, when it is asked, that it has done all.
 * That too may come too early, but NCCL's manual has a loop that asks the stream first:
 * "Asynchronous errors and error handling"). -1: none. */
void background_ready(struct judge *j, int stream, int comm);
/* Whoever uses the stream, the device (-1: all) or the communicator meanwhile is named.
 */
enum background_use { USES_STREAM, USES_DEVICE, USES_COMM };
void background_uses(struct judge *j, enum background_use what, int number,
                     struct judge_at at);

#endif
