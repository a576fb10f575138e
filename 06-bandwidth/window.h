/*
 * window.h: the registered buffers of --register, with an NCCL that has no windows yet.
 *
 * With a new NCCL there is nothing in here.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include "older.h"

/* A window is a registered buffer that all ranks know of. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
typedef void *ncclWindow_t;
enum { NCCL_WIN_COLL_SYMMETRIC = 1 };

LESSON_FUNCTION ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer,
                                                    size_t bytes, ncclWindow_t *window,
                                                    int flags) {
    (void)flags;
    return ncclCommRegister(comm, buffer, bytes, window);
}

LESSON_FUNCTION ncclResult_t ncclCommWindowDeregister(ncclComm_t comm,
                                                      ncclWindow_t window) {
    return ncclCommDeregister(comm, window);
}
#endif

#endif
