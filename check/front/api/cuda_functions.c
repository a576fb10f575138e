/*
 * cuda_functions.c: functions of the program that run on a stream, and kernels.
 *
 * An operation is told before it is called: it may run at once.
 */
#include "cuda_front.h"
#include "start.h"
#include "talk.h"

struct host_function {
    cudaHostFn_t function;
    cudaStreamCallback_t callback;
    void *data;
    int number;
    bool stays;                 // it belongs to a graph, which may be launched again
    struct host_function *next; // of those that stay
};
static struct host_function *that_stay;

static void run(struct host_function *f, cudaStream_t stream, cudaError_t status) {
    struct host_function function = *f;
    if (!f->stays)
        free(f);
    struct front_own before = front_function_begins();
    TELL(judge_host_function_begins, function.number);
    if (function.callback)
        function.callback(stream, status, function.data);
    else
        function.function(function.data);
    TELL(judge_host_function_ends, function.number);
    front_function_ends(before);
}

static void CUDART_CB run_function(void *f) {
    run(f, NULL, cudaSuccess);
}

/* Told before: it may run at once. NULL: the stream is none. */
static struct host_function *host_function(struct host_function like, cudaStream_t stream,
                                           struct judge_at at) {
    if (!like.function && !like.callback)
        return NULL; // CUDA will refuse it
    bool in_graph = stream_capturing(stream);
    int number;
    start_has_functions();
    struct judge *j = front_in_stream(stream, -1, &number);
    struct host_function *f = NULL;
    if (number >= 0) {
        f = must_alloc(sizeof *f);
        *f = like;
        f->number = judge_host_function(j, number, at);
        f->stays = in_graph;
        if (in_graph) {
            f->next = that_stay;
            that_stay = f;
        }
    }
    front_out();
    return f;
}

static cudaError_t launched(cudaError_t error, struct host_function *f,
                            struct judge_at at) {
    if (error != cudaSuccess && f && !f->stays)
        free(f);
    return answer(error, at);
}

static cudaError_t launch_host_func(cudaStream_t stream, cudaHostFn_t function,
                                    void *data, struct judge_at at) {
    struct host_function *f = host_function(
        (struct host_function){.function = function, .data = data}, stream, at);
    const struct timeline_op op = {.name = "host function", .at = at};
    cudaError_t error = ON_TIMELINE(&op, stream, -1,
                                    CALL(BELOW(cudaLaunchHostFunc), stream,
                                         f ? run_function : function, f ? f : data));
    return launched(error, f, at);
}
ON_STREAM(cudaLaunchHostFunc, launch_host_func,
          (cudaStream_t stream, cudaHostFn_t function, void *data), stream, function,
          data)

#if !OVER_STANDIN
static void CUDART_CB run_callback(cudaStream_t stream, cudaError_t status, void *f) {
    run(f, stream, status);
}

static cudaError_t stream_add_callback(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void *data, unsigned int flags,
                                       struct judge_at at) {
    struct host_function *f = host_function(
        (struct host_function){.callback = callback, .data = data}, stream, at);
    const struct timeline_op op = {.name = "host function", .at = at};
    cudaError_t error =
        ON_TIMELINE(&op, stream, -1,
                    CALL(BELOW(cudaStreamAddCallback), stream,
                         f ? run_callback : callback, f ? f : data, flags));
    return launched(error, f, at);
}
ON_STREAM(cudaStreamAddCallback, stream_add_callback,
          (cudaStream_t stream, cudaStreamCallback_t callback, void *data,
           unsigned int flags),
          stream, callback, data, flags)

struct timeline_op cuda_kernel(cudaStream_t stream, struct judge_at at) {
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_op(j, number, NULL, 0, JUDGE_KERNEL, at);
    front_out();
    return (struct timeline_op){.name = "kernel", .at = at};
}

void cuda_driver_called(const char *name) {
    static char why[128];
    snprintf(why, sizeof why,
             "the program calls %s, a function of CUDA's driver; the checks know those of"
             " the runtime",
             name);
    talk_gives_up(why);
}
#endif
