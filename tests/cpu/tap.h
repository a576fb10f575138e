/*
 * TAP for programs of many ranks. A test calls expect() as often as it likes and closes
 * the point with point(): it is ok when no rank noted a failure since the last one. Rank
 * 0 prints the point, and for each rank that failed its first failures, with rank and
 * values.
 *
 * All ranks call start(), point() and finish() the same number of times. A program that
 * defines TAP_ALONE before it includes this file runs without MPI; one that defines
 * TAP_THREADS starts MPI for several threads.
 */
#ifndef TAP_H
#define TAP_H

#ifndef TAP_ALONE
#include <mpi.h>
#endif
#include <nccl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAP_NOTES = 600 }; /* bytes of text that a rank keeps for one point */

static int tap_rank = 0, tap_ranks = 1;
static int tap_points = 0, tap_failed_points = 0;
static int tap_failures = 0; /* on this rank, since the last point */
static char tap_notes[TAP_NOTES];
static pthread_mutex_t tap_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline void start(int *argc, char ***argv) {
#ifdef TAP_ALONE
    (void)argc;
    (void)argv;
#else
#ifdef TAP_THREADS
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
#else
    MPI_Init(argc, argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &tap_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tap_ranks);
#endif
}

/* Notes a failure of this rank, with a line that says where and why. Any thread may call
 * it. */
__attribute__((format(printf, 2, 3))) static inline bool expect(bool right,
                                                                const char *why, ...) {
    if (right) {
        return true;
    }
    pthread_mutex_lock(&tap_mutex);
    if (tap_failures++ < 3) {
        size_t used = strlen(tap_notes);
        int head =
            snprintf(tap_notes + used, TAP_NOTES - used, "#   rank %d: ", tap_rank);
        if (head > 0 && used + (size_t)head < TAP_NOTES) {
            used += (size_t)head;
            va_list arguments;
            va_start(arguments, why);
            vsnprintf(tap_notes + used, TAP_NOTES - used, why, arguments);
            va_end(arguments);
            used = strlen(tap_notes);
            snprintf(tap_notes + used, TAP_NOTES - used, "\n");
        }
    }
    pthread_mutex_unlock(&tap_mutex);
    return false;
}

__attribute__((format(printf, 1, 2))) static inline void point(const char *name, ...) {
    int failed = tap_failures > 0;
#ifndef TAP_ALONE
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
    tap_points++;
    if (tap_rank == 0) {
        char text[300];
        va_list arguments;
        va_start(arguments, name);
        vsnprintf(text, sizeof text, name, arguments);
        va_end(arguments);
        printf("%sok %d - %s\n", failed ? "not " : "", tap_points, text);
    }
    if (failed) {
        tap_failed_points++;
        char *all = tap_notes;
#ifndef TAP_ALONE
        all = calloc((size_t)tap_ranks, TAP_NOTES);
        MPI_Gather(tap_notes, TAP_NOTES, MPI_CHAR, all, TAP_NOTES, MPI_CHAR, 0,
                   MPI_COMM_WORLD);
#endif
        if (tap_rank == 0) {
            for (int r = 0; r < tap_ranks; r++) {
                fputs(all + (size_t)r * TAP_NOTES, stdout);
            }
        }
#ifndef TAP_ALONE
        free(all);
#endif
    }
    fflush(stdout);
    tap_failures = 0;
    memset(tap_notes, 0, TAP_NOTES);
}

/* Ends a run that can't go on, such as one without a communicator. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void bail(const char *why,
                                                                        ...) {
    va_list arguments;
    va_start(arguments, why);
    printf("Bail out! rank %d: ", tap_rank);
    vprintf(why, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
#ifndef TAP_ALONE
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
    exit(1);
}

/* Prints the plan; the program's exit status. */
static inline int finish(void) {
    if (tap_rank == 0) {
        printf("1..%d\n", tap_points);
        fflush(stdout);
    }
#ifndef TAP_ALONE
    MPI_Finalize();
#endif
    return tap_failed_points > 0;
}

static inline bool tap_cuda(cudaError_t got, cudaError_t wanted, const char *call,
                            int line) {
    return expect(got == wanted, "line %d: %s returned %s, expected %s", line, call,
                  cudaGetErrorName(got), cudaGetErrorName(wanted));
}

/* NCCL's names, which its own library does not offer. */
static inline const char *nccl_name(ncclResult_t result) {
    static const char *const names[] = {
        "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
        "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
        "ncclRemoteError",   "ncclInProgress",
    };
    return (unsigned)result < 8 ? names[result] : "an unknown code";
}

static inline bool tap_nccl(ncclResult_t got, ncclResult_t wanted, const char *call,
                            int line) {
    return expect(got == wanted, "line %d: %s returned %s (%s), expected %s", line, call,
                  nccl_name(got), ncclGetLastError(NULL), nccl_name(wanted));
}

/* A call and the code that it must return. */
#define CUDA_IS(wanted, call) tap_cuda(call, wanted, #call, __LINE__)
#define NCCL_IS(wanted, call) tap_nccl(call, wanted, #call, __LINE__)
#define CUDA(call) CUDA_IS(cudaSuccess, call)
#define NCCL(call) NCCL_IS(ncclSuccess, call)

#ifndef TAP_ALONE
/* A communicator of all ranks, rank r on device r of its host. */
static inline ncclComm_t world_comm(void) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1) {
        bail("no device");
    }
    cudaSetDevice(tap_rank % devices);
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (tap_rank == 0) {
        ncclGetUniqueId(&id);
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclComm_t comm = NULL;
    ncclResult_t result = ncclCommInitRank(&comm, tap_ranks, id, tap_rank);
    if (result != ncclSuccess || comm == NULL) {
        bail("ncclCommInitRank: %s, %s", nccl_name(result), ncclGetLastError(NULL));
    }
    return comm;
}
#endif

#endif
