/*
 * answer.h: how a public function of CUDA begins and ends in the front. Those of cuBLAS
 * and NCCL have a part of it.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "handles.h"

/* The first lines of a public function of CUDA: see FRONT_PASS. */
#define ENTER(name, ...)             \
    FRONT_PASS(name, ##__VA_ARGS__); \
    const struct judge_at at = {__func__, caller.site}
/* The same for one that waits: a report names its line of Python, if it is one. */
#define ENTER_WAIT(name, ...)        \
    FRONT_PASS(name, ##__VA_ARGS__); \
    const struct judge_at at = {__func__, python_site(caller.site)}
/* The same for a function whose name in the library is not the one that programs use. */
#define ENTER_AS(shown, name, ...)   \
    FRONT_PASS(name, ##__VA_ARGS__); \
    const struct judge_at at = {shown, caller.site}

/* The judge hears of a call that failed. */
void front_failed(bool cuda, const char *code, const char *text, struct judge_at at);
/* "cudaErrorInvalidValue (1)", until the next. */
const char *front_code(const char *name, int code);
/* What the program is answered. */
/* The newest call that failed because a stream was captured; call NULL: none has. */
extern struct judge_at capture_broken_by;
cudaError_t cuda_failed(cudaError_t error, struct judge_at at);
/* Of a thread that the checks leave alone (python_watchdog). It ends the process as soon
 * as it hears of a crash, so it hears of it after the judges. */
void cuda_watched(cudaError_t error);
/* After a call that failed, or was the first: of a function that changes nothing. */
cudaError_t cuda_passed(cudaError_t error, const char *call, void *return_address);
static inline cudaError_t answer(cudaError_t error, struct judge_at at) {
    return error == cudaSuccess ? error : cuda_failed(error, at);
}

/* A kind of cuda.list and cublas.list: it says what an error means. */
#define LOOKED(name, parameters, ...)          \
    const char *name parameters {              \
        FRONT_PASS(name, __VA_ARGS__);         \
        TELL(judge_looked);                    \
        return CALL(BELOW(name), __VA_ARGS__); \
    }

/* Behind a call that waited: ends the wait, and is an answer. */
cudaError_t wait_over(cudaError_t error, bool happened, struct judge_at at);

/* A program may be compiled so that stream 0 is the thread's own (nvcc --default-stream
 * per-thread): then it calls functions of another name. ON_STREAM defines both;
 * `parameters` has a `stream`, and `tells` takes them and where the call stands. */
#define LEGACY_STREAM(name, tells, parameters, ...) \
    cudaError_t name parameters {                   \
        ENTER(name, __VA_ARGS__);                   \
        return tells(__VA_ARGS__, at);              \
    }
#if !OVER_STANDIN
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

#endif
