/*
 * windows.c: the symmetric windows of communicators: which buffers of a call lie in one,
 * and where.
 *
 * NCCL User Guide, "NCCL API Supported Flags", NCCL_WIN_COLL_SYMMETRIC: "users need to
 * guarantee the offset to the buffer head address from all ranks must be equal when
 * calling NCCL collective operations".
 */
#include "windows.h"

#include "front.h"

#include <stdlib.h>

static struct window {
    const void *comm, *handle;
    const char *start;
    size_t bytes;
    struct window *next;
} * windows;

void windows_made(const void *comm, const void *handle, const void *buffer,
                  size_t bytes) {
    struct window *window = malloc(sizeof *window);
    if (!window)
        return; // without it nothing is claimed of this buffer
    *window = (struct window){comm, handle, buffer, bytes, windows};
    windows = window;
}

void windows_gone(const void *comm, const void *handle) {
    for (struct window **at = &windows; *at;) {
        struct window *window = *at;
        if (window->comm == comm && (!handle || window->handle == handle)) {
            *at = window->next;
            free(window);
        } else {
            at = &window->next;
        }
    }
}

static size_t offset(const void *comm, const void *buffer) {
    for (const struct window *window = windows; window; window = window->next)
        if (window->comm == comm && (const char *)buffer >= window->start &&
            (const char *)buffer < window->start + window->bytes)
            return (size_t)((const char *)buffer - window->start) + 1;
    return 0;
}

/* Of a call in place one buffer is a part of the other, each rank's its own (NCCL User
 * Guide, "In-place Operations"). */
static bool is_part(const void *part, const void *whole, int rank,
                    const struct judge_call *call) {
    return part == (const char *)whole + (size_t)rank * call->count * call->type_bytes;
}

void windows_place(const void *comm, int rank, struct judge_call *call) {
    const void *send = call->sendbuff, *recv = call->recvbuff;
    bool sends = true, receives = true; // all ranks do, from the same offset
    if (!windows)
        return;
    switch (call->kind) {
    case JUDGE_ALL_REDUCE:
    case JUDGE_ALL_TO_ALL: break;
    case JUDGE_ALL_GATHER: sends = !is_part(send, recv, rank, call); break;
    case JUDGE_REDUCE_SCATTER: receives = !is_part(recv, send, rank, call); break;
    case JUDGE_BROADCAST: sends = false; break;
    case JUDGE_REDUCE: receives = false; break;
    default: return;
    }
    call->send_offset = sends ? offset(comm, send) : 0;
    call->recv_offset = receives ? offset(comm, recv) : 0;
}
