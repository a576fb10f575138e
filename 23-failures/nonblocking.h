/*
 * nonblocking.h: calls that don't block the host, each with a time limit.
 *
 * With blocking = 0 a call returns ncclInProgress, and NCCL goes on in the background.
 */
#ifndef NONBLOCKING_H
#define NONBLOCKING_H

#include "lesson.h"

#include <unistd.h>

/* No call on such a communicator blocks the host. Otherwise the first call between two
 * ranks would wait inside NCCL, where no deadline reaches it. */
LESSON_FUNCTION ncclConfig_t never_blocking(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

/* Asks until what was begun on the communicator is done, has failed, or is too late. */
LESSON_FUNCTION ncclResult_t settled(ncclComm_t comm, double seconds) {
    ncclResult_t state = ncclInProgress;
    for (double end = MPI_Wtime() + seconds; state == ncclInProgress; usleep(100))
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || MPI_Wtime() > end)
            return ncclSystemError;
    return state;
}

LESSON_FUNCTION void must_settle(ncclComm_t comm, const char *call) {
    if (settled(comm, 30) != ncclSuccess)
        lesson_fail("%s failed: %s", call, ncclGetLastError(comm));
}

/* For calls that may go on in the background. */
#define CHECK_BEGUN(call)                  \
    do {                                   \
        const ncclResult_t begun = (call); \
        if (begun != ncclInProgress)       \
            CHECK_NCCL(begun);             \
    } while (0)

#endif
