/*
 * nccl_registered.c: buffers that are registered with communicators: where in their
 * windows those of a call lie.
 *
 * NCCL User Guide, "NCCL API Supported Flags",
 * NCCL_WIN_COLL_SYMMETRIC: "users need to guarantee the offset to the buffer head address
 * from all ranks must be equal when calling NCCL collective operations".
 */
#include "nccl_registered.h"

#include <stdlib.h>
#include <string.h>

static struct registration {
    const void *comm, *handle;
    const char *start;
    size_t bytes;
    bool symmetric;
    uint64_t number; // the judge's, of a window
    struct judge_at at;
    struct registration *next;
} * all;

void registered_add(const void *comm, const void *handle, const void *buffer,
                    size_t bytes, bool symmetric, uint64_t number, struct judge_at at) {
    struct registration *new = malloc(sizeof *new);
    if (!new)
        return; // without it nothing is claimed of this buffer
    *new = (struct registration){comm, handle, buffer, bytes, symmetric, number, at, all};
    all = new;
}

struct registration *registered_take(const void *comm, const void *handle) {
    for (struct registration **at = &all, *one; (one = *at); at = &one->next)
        if (one->comm == comm && one->handle == handle) {
            *at = one->next;
            return one;
        }
    return NULL;
}

void registered_back(struct registration *one) {
    if (!one)
        return;
    one->next = all;
    all = one;
}

void registered_gone(const void *comm, const void *handle) {
    for (struct registration **at = &all, *one; (one = *at);)
        if (one->comm == comm && (!handle || one->handle == handle)) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
}

uint64_t registered_number(const struct registration *one) {
    return one->number;
}

bool registered_window(const void *comm, const void *handle, struct judge_put *put) {
    const struct registration *one = all;
    while (one && (one->comm != comm || one->handle != handle))
        one = one->next;
    if (!one)
        return false;
    put->registered = one->at;
    put->window = one->number;
    return true;
}

/* 0: in no symmetric window, or nothing is known of it. */
static size_t offset_of(const void *comm, const void *buffer) {
    const char *at = buffer;
    for (const struct registration *one = all; one; one = one->next)
        if (one->comm == comm && at >= one->start && at < one->start + one->bytes)
            return one->symmetric ? (size_t)(at - one->start) + 1 : 0;
    return 0;
}

/* Of a call in place one buffer is a part of the other, each rank's its own (NCCL User
 * Guide, "In-place Operations"). */
static bool is_part(const void *part, const void *whole, int rank,
                    const struct judge_call *call) {
    return part == (const char *)whole + (size_t)rank * call->count * call->type_bytes;
}

void registered_place(const void *comm, int rank, struct judge_call *call) {
    const void *send = call->sendbuff, *recv = call->recvbuff;
    bool sends = true, receives = true; // all ranks do, from the same offset
    switch (call->kind) {
    case JUDGE_ALL_REDUCE:
    case JUDGE_ALL_TO_ALL: break;
    case JUDGE_ALL_GATHER: sends = !is_part(send, recv, rank, call); break;
    case JUDGE_REDUCE_SCATTER: receives = !is_part(recv, send, rank, call); break;
    case JUDGE_BROADCAST: sends = false; break;
    case JUDGE_REDUCE: receives = false; break;
    default: return;
    }
    if (sends && call->count > 0)
        call->send_offset = offset_of(comm, send);
    if (receives && call->count > 0)
        call->recv_offset = offset_of(comm, recv);
}

void registered_freed(struct judge *j, const void *start, struct judge_at at) {
    struct judge_memory memory;
    if (!all || !judge_memory_find(j, start, &memory))
        return;
    const char *from = memory.start, *to = from + memory.bytes;
    for (const struct registration *one = all; one; one = one->next)
        if (one->start < to && from < one->start + one->bytes) {
            bool window = strcmp(one->at.call, "ncclCommWindowRegister") == 0;
            judge_found(j, window ? JUDGE_WINDOW_FREED : JUDGE_REGISTERED_FREED, -1,
                        one->at, at);
            return;
        }
}
