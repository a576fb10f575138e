/*
 * handles.h: the program's handles, and the judge's numbers for what they stand for.
 *
 * Everything here belongs to the judge's lock: it is used between front_in and front_out
 * only.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include "front.h"

/* The names of CUDA are seen by programs, all others are not: the files are compiled with
 * -fvisibility=hidden. */
#pragma GCC visibility push(default)
#include <cuda_runtime.h>
#pragma GCC visibility pop
#define PUBLIC __attribute__((visibility("default")))

/* The header of the stand-in, which has a part of CUDA. */
#ifdef CUDA_RUNTIME_H_CPU
#define ALL_OF_CUDA 0
#else
#define ALL_OF_CUDA 1
#endif

/* --- From a handle to what is known of it --------------------------------------- */

struct table {
    struct {
        const void *key;
        void *value;
    } * at;
    size_t used, size;
};
void *table_get(const struct table *table, const void *key); // NULL: not there
void table_put(struct table *table, const void *key, void *value);
void table_remove(struct table *table, const void *key);
void *front_alloc(size_t bytes); // zeroed; never NULL

/* --- Streams -------------------------------------------------------------------- */

/* front_in, and the number of a stream: the default ones are those of `device`, or with
 * -1 of the current one. A stream that was made by unknown means is announced. -1: no
 * stream. */
struct judge *front_in_stream(cudaStream_t handle, int device, int *stream);

/* The number alone, and the device that the stream is on. */
int stream_number(cudaStream_t handle, int device, int *on);
bool stream_capturing(cudaStream_t handle); // outside of front_in

void stream_made(struct judge *j, cudaStream_t handle, bool blocking, int device,
                 struct judge_at at);
void stream_gone(struct judge *j, cudaStream_t handle);
void streams_reset(struct judge *j,
                   int device); // cudaDeviceReset; -1: the end of the process

void graphs_reset(struct judge *j); // graph.c's, likewise

/* --- Ranges --------------------------------------------------------------------- */

/* `height` rows of `width` bytes, their starts `pitch` apart: a matrix, a vector with
 * gaps, or all in one. Height 0: where exactly is not known. */
struct rows {
    const void *start;
    size_t pitch, width, height;
};
enum { MOST_ROWS = 64 };
/* Adds up to MOST_ROWS ranges; false if that does not do. What lies in the gaps is not
 * theirs. */
bool add_rows(const struct rows *rows, bool write, bool device,
              struct judge_range *ranges, int *n);

/* --- What cuda.c has for the others --------------------------------------------- */

int current_device(void); // outside of front_in

/* The first lines of a public function of CUDA: see FRONT_PASS. */
#define ENTER(name, ...)             \
    FRONT_PASS(name, ##__VA_ARGS__); \
    AT_HERE;                         \
    check_host_function(at)
/* The same for a function whose name in the library is not the one that programs use. */
#define ENTER_AS(shown, name, ...)                                               \
    FRONT_PASS(name, ##__VA_ARGS__);                                             \
    const struct judge_at at = {shown, front_site(__builtin_return_address(0))}; \
    check_host_function(at)

bool group_is_open(void); // nccl.c: in this thread

extern __thread bool in_host_function; // this thread runs one of the program's
void host_function_calls(struct judge_at at);
static inline void check_host_function(struct judge_at at) {
    if (in_host_function)
        host_function_calls(at);
}

/* What the program is answered; the judge hears of an error. */
cudaError_t cuda_failed(cudaError_t error, struct judge_at at);
static inline cudaError_t answer(cudaError_t error, struct judge_at at) {
    return error == cudaSuccess ? error : cuda_failed(error, at);
}

/* A program may be compiled so that stream 0 is the thread's own (nvcc --default-stream
 * per-thread): then it calls functions of another name. ON_STREAM defines both;
 * `parameters` has a `stream`, and `tells` takes them and where the call stands. */
#define LEGACY_STREAM(name, tells, parameters, ...) \
    cudaError_t name parameters {                   \
        ENTER(name, __VA_ARGS__);                   \
        return tells(__VA_ARGS__, at);              \
    }
#if ALL_OF_CUDA
#define ON_STREAM(name, tells, parameters, ...)         \
    LEGACY_STREAM(name, tells, parameters, __VA_ARGS__) \
    PUBLIC cudaError_t name##_ptsz parameters;          \
    cudaError_t name##_ptsz parameters {                \
        ENTER_AS(#name, name##_ptsz, __VA_ARGS__);      \
        if (!stream)                                    \
            stream = cudaStreamPerThread;               \
        return tells(__VA_ARGS__, at);                  \
    }
#else
#define ON_STREAM LEGACY_STREAM
#endif

/* Behind a call that waited: ends the wait, and is an answer. */
cudaError_t wait_over(cudaError_t error, bool happened, struct judge_at at);

#endif
