/*
 * nonblocking.h: calls that don't block the host, each with a time limit.
 *
 * With blocking = 0 a call may return ncclInProgress, and NCCL goes on in the background.
 *
 * NCCL 2.18 can abort and make a communicator anew; 2.27 can shrink one; 2.29 can grow
 * one. A function that is missing returns ncclInvalidUsage.
 */
#ifndef NONBLOCKING_H
#define NONBLOCKING_H

#include "lesson.h"

#include <unistd.h>

enum {
    HAS_SHRINK = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3),
    HAS_GROW = NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2),
};

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
enum { NCCL_SHRINK_ABORT };
#define ncclCommShrink(comm, list, n, made, config, flags) \
    ((void)(comm), (void)(list), (void)(n), (void)(config), ncclInvalidUsage)
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
#define ncclCommGetUniqueId(comm, id) ((void)(comm), (void)(id), ncclInvalidUsage)
#define ncclCommGrow(comm, n, id, rank, made, config) \
    ((void)(comm), (void)(id), (void)(config), ncclInvalidUsage)
#endif

/* Of the calls on such a communicator only ncclCommDestroy and ncclCommAbort may block
 * the host. Otherwise the first call between two ranks would wait inside NCCL, where no
 * deadline reaches it. */
static inline ncclConfig_t never_blocking(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

/* Asks until what was begun on the communicator is done or has failed. Returns
 * ncclInProgress if that takes too long. */
static inline ncclResult_t settled(ncclComm_t comm, double seconds) {
    for (const double end = MPI_Wtime() + seconds;; usleep(100)) {
        ncclResult_t state;
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess)
            return ncclSystemError;
        if (state != ncclInProgress || MPI_Wtime() > end)
            return state;
    }
}

static inline void must_settle(ncclComm_t comm, const char *call) {
    const ncclResult_t state = settled(comm, 30);
    if (state == ncclInProgress)
        lesson_fail("%s is not done after 30 s: has another rank been lost?", call);
    if (state != ncclSuccess)
        lesson_fail("%s failed: %s", call, ncclGetLastError(comm));
}

/* For calls that may go on in the background. */
#define CHECK_BEGUN(call)                                         \
    do {                                                          \
        const ncclResult_t begun = (call);                        \
        if (begun != ncclSuccess && begun != ncclInProgress)      \
            lesson_nccl_failed(begun, #call, __FILE__, __LINE__); \
    } while (0)

#endif
