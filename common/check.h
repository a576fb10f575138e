/*
 * check.h: calls that fail, memory that is missing: the job ends, and says why.
 *
 * Each message names the rank, its machine, and what to do about it.
 */
#ifndef CHECK_H
#define CHECK_H

#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#ifdef __cplusplus // lessons with kernels
#define _Noreturn __attribute__((noreturn))
#endif

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Error checks. Each runs a call and, if it fails, ends the whole job with exit code 1.
 * If only this rank ended, the others would wait for it forever. */
#define CHECK_MPI(call)                                              \
    do {                                                             \
        int mpi_error = (call);                                      \
        if (mpi_error != MPI_SUCCESS)                                \
            lesson_mpi_failed(mpi_error, #call, __FILE__, __LINE__); \
    } while (0)

#define CHECK_CUDA(call)                                               \
    do {                                                               \
        cudaError_t cuda_error = (call);                               \
        if (cuda_error != cudaSuccess)                                 \
            lesson_cuda_failed(cuda_error, #call, __FILE__, __LINE__); \
    } while (0)

#define CHECK_NCCL(call)                                               \
    do {                                                               \
        ncclResult_t nccl_error = (call);                              \
        if (nccl_error != ncclSuccess)                                 \
            lesson_nccl_failed(nccl_error, #call, __FILE__, __LINE__); \
    } while (0)

#ifndef __cplusplus
int setenv(const char *name, const char *value, int overwrite); // POSIX's, not C11's
#endif
/* Since these say what failed, and where, a note of the checks would say it twice. */
__attribute__((constructor)) static void lesson_says_itself(void) {
    setenv("NCCL_CHECK_NOTES", "off", 0);
}

/* For lessons that include cublas_v2.h. */
#define CHECK_CUBLAS(call)                                                   \
    do {                                                                     \
        cublasStatus_t cublas_error = (call);                                \
        if (cublas_error != CUBLAS_STATUS_SUCCESS)                           \
            lesson_fail("%s failed at %s:%d\n  cuBLAS says: %s (%s)", #call, \
                        lesson_base(__FILE__), __LINE__,                     \
                        cublasGetStatusString(cublas_error),                 \
                        cublasGetStatusName(cublas_error));                  \
    } while (0)

/* The CPU build is much slower, so some defaults are smaller there. */
#ifdef CUDA_RUNTIME_H_CPU
enum { LESSON_CPU_BUILD = 1 };
#else
enum { LESSON_CPU_BUILD = 0 };
#endif

/* A rank's number and machine. */
struct lesson_self {
    int rank, nranks;
    char machine[MPI_MAX_PROCESSOR_NAME];
};

/* Who this is while MPI does not run. A lesson without MPI fills it in. */
static struct lesson_self lesson_alone = {0, 1, "this machine"};

static inline bool lesson_mpi_runs(void) {
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return started && !ended;
}

static inline struct lesson_self lesson_self(void) {
    struct lesson_self self = lesson_alone;
    int length;
    if (lesson_mpi_runs()) {
        MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &self.nranks);
        MPI_Get_processor_name(self.machine, &length);
        self.machine[strcspn(self.machine, ".")] = '\0';
    }
    return self;
}

/* Whether this rank is the first of its machine to fail. The first one makes a file, in
 * the folder that the launcher makes for a job and removes after it. */
static inline bool lesson_first_to_fail(void) {
    const char *folder = getenv("PMIX_SERVER_TMPDIR");
    char name[512];
    snprintf(name, sizeof name, "%s/lesson-failed", folder ? folder : "");
    FILE *file = folder ? fopen(name, "wx") : NULL;
    if (file)
        fclose(file);
    return file || !folder || errno != EEXIST;
}

static inline void lesson_pause(double seconds) {
    poll(NULL, 0, seconds > 0 ? (int)(seconds * 1000) : 0); // -1 would be for ever
}

/* Prints "rank R on MACHINE: " and the message to stderr, and ends the job with exit
 * code 1. If several ranks fail in the same way it is printed once: higher ranks wait a
 * moment, the first of a machine prints, and its MPI_Abort ends the others. */
static inline _Noreturn void lesson_fail(const char *format, ...) {
    struct lesson_self self = lesson_self();
    if (self.nranks > 1) {
        lesson_pause(0.1 * (self.rank < 20 ? self.rank : 20));
        if (!lesson_first_to_fail())
            lesson_pause(10);
    }
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "rank %d on %s: %s\n", self.rank, self.machine, text);
    fflush(stderr);
    if (lesson_mpi_runs())
        MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static inline const char *lesson_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline _Noreturn void lesson_mpi_failed(int error, const char *call,
                                               const char *file, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    lesson_fail("%s failed at %s:%d\n  MPI says: %s", call, lesson_base(file), line,
                text);
}

static inline _Noreturn void lesson_cuda_failed(cudaError_t error, const char *call,
                                                const char *file, int line) {
    const char *hint = "";
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver)
        hint =
            "\n  Hint: this machine has no GPU that CUDA can use, or its driver is too old."
            "\n        Run on a node with GPUs, or build for the CPU: make BACKEND=cpu";
    else if (error == cudaErrorMemoryAllocation)
        hint = "\n  Hint: the GPU has too little free memory; choose a smaller -n.";
    else if (error == cudaErrorInvalidValue)
        hint =
            "\n  Hint: too many bytes, or a pointer to the wrong kind of memory, or freed before?";
    lesson_fail("%s failed at %s:%d\n  CUDA says: %s (%s)%s", call, lesson_base(file),
                line, cudaGetErrorString(error), cudaGetErrorName(error), hint);
}

static inline _Noreturn void lesson_nccl_failed(ncclResult_t error, const char *call,
                                                const char *file, int line) {
    const char *hint = "";
    if (error == ncclUnhandledCudaError)
        hint = "\n  Hint: a CUDA call inside NCCL failed; NCCL_DEBUG=INFO names it.";
    else if (strstr(call, "Init") &&
             (error == ncclInvalidUsage || error == ncclInvalidArgument ||
              (LESSON_CPU_BUILD && error == ncclRemoteError)))
        hint =
            "\n  Hint: does each rank have a GPU of its own, a number of its own, and the same unique id?"
            "\n        NCCL_DEBUG=INFO says more.";
    else if (error == ncclInvalidArgument)
        hint =
            "\n  Hint: an argument is out of range, or was not made; NCCL_DEBUG=WARN names it.";
    else if (error == ncclInProgress)
        hint =
            "\n  Hint: this is no error: ask ncclCommGetAsyncError until it says something else.";
    else if (!LESSON_CPU_BUILD && (error == ncclSystemError || error == ncclRemoteError))
        hint =
            "\n  Hint: this is often the network. NCCL_DEBUG=INFO shows which interface NCCL uses,"
            "\n        NCCL_SOCKET_IFNAME=NAME chooses a different one.";
    lesson_fail("%s failed at %s:%d\n  NCCL says: %s\n  Last error: %s%s", call,
                lesson_base(file), line, ncclGetErrorString(error),
                ncclGetLastError(NULL), hint);
}
/* How many ranks share this machine's memory. lesson_one_gpu_per_rank sets it. */
static int lesson_ranks_here = 1;

/* Ends the job with exit code 1 unless this rank's GPU has `bytes` bytes free. */
static inline void lesson_need_memory(size_t bytes) {
    size_t free_bytes, total_bytes;
    CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (bytes > free_bytes)
        lesson_fail(
            "the buffers need %.5g GB of GPU memory, and the GPU has %.5g GB free of %.5g GB\n"
            "  Hint: choose a smaller -n.",
            (double)bytes / 1e9, (double)free_bytes / 1e9, (double)total_bytes / 1e9);
}

/* Bytes of host memory that are still available, for each rank of the machine. */
static inline double lesson_host_memory(void) {
    double kilobytes = 1e15; // not Linux: malloc decides
    char line[128];
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            break;
    if (info)
        fclose(info);
    return kilobytes * 1024 / lesson_ranks_here;
}

/* malloc that ends the job instead of failing. Release the memory with free(). */
static inline void *lesson_malloc(size_t bytes) {
    double there = lesson_host_memory();
    void *memory = (double)bytes < there ? malloc(bytes) : NULL;
    if (!memory)
        lesson_fail(
            "the buffer needs %.5g GB of host memory, and there are %.5g GB for each rank\n"
            "  Hint: choose a smaller -n.",
            (double)bytes / 1e9, there / 1e9);
    return memory;
}

#endif
