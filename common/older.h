/*
 * older.h: functions that lessons call and that an older NCCL does not have.
 *
 * With a new NCCL this file is empty. Registering a buffer only makes it faster. Where
 * NCCL can't do it, these functions give memory that works as well, and register nothing.
 */
#ifndef OLDER_H
#define OLDER_H

#include "lesson.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 1)
static inline ncclResult_t ncclMemAlloc(void **buffer, size_t bytes) {
    return cudaMalloc(buffer, bytes) == cudaSuccess ? ncclSuccess
                                                    : ncclUnhandledCudaError;
}

static inline ncclResult_t ncclMemFree(void *buffer) {
    return cudaFree(buffer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

static inline ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer,
                                            size_t bytes, void **handle) {
    (void)comm, (void)buffer, (void)bytes;
    *handle = NULL;
    return ncclSuccess;
}

static inline ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    (void)comm, (void)handle;
    return ncclSuccess;
}
#endif

/* A window is a registered buffer that all ranks know of. Without windows an older NCCL
 * registers the buffer on this rank only. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
typedef void *ncclWindow_t;
enum { NCCL_WIN_COLL_SYMMETRIC = 1 };

static inline ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer,
                                                  size_t bytes, ncclWindow_t *window,
                                                  int flags) {
    (void)flags;
    return ncclCommRegister(comm, buffer, bytes, window);
}

static inline ncclResult_t ncclCommWindowDeregister(ncclComm_t comm,
                                                    ncclWindow_t window) {
    return ncclCommDeregister(comm, window);
}
#endif

/* Several unique ids spread the start over several ranks; the first alone is enough. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 23, 4)
#define ncclCommInitRankScalable(comm, nranks, rank, nids, ids, config) \
    ncclCommInitRank(comm, nranks, (ids)[0], rank)
#endif

#endif
