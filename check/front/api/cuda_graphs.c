/*
 * cuda_graphs.c: captures, and the graphs that come of them.
 *
 * The judge records what is queued while a stream is captured. A graph that was put
 * together node by node, or copied, is not known to it: launched, it is an operation like
 * a kernel.
 */
#include "cuda_graphs.h"

#include "cuda_front.h"

/* The values are the judge's numbers, from 1. */
static struct map graphs, executables;

static void keep(struct map *table, const void *handle, int number) {
    table_put(table, handle, (void *)(intptr_t)(number + 1));
}

/* -1: it is not known. */
static int number_of(const struct map *table, const void *handle) {
    return (int)(intptr_t)table_get(table, handle) - 1;
}

static int drop(struct map *table, const void *handle) {
    int number = number_of(table, handle);
    table_put(table, handle, NULL);
    return number;
}

/* cudaDeviceReset: nobody destroys them any more. */
static void all_gone(struct judge *j, struct map *table,
                     void (*gone)(struct judge *, int)) {
    for (size_t i = 0; i < table->size;) {
        const void *handle = table_handle(table, i);
        if (handle)
            gone(j, drop(table, handle)); // another may have moved here
        else
            i++;
    }
}

void graphs_reset(struct judge *j) {
    all_gone(j, &executables, judge_executable_gone);
    all_gone(j, &graphs, judge_graph_gone);
}

static cudaError_t capture_begun(cudaError_t error, cudaStream_t stream,
                                 struct judge_at at) {
    int number;
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_capture_begins(j, number, at);
    front_out();
    return error;
}

static cudaError_t begin_capture(cudaStream_t stream, enum cudaStreamCaptureMode mode,
                                 struct judge_at at) {
    return capture_begun(CALL(BELOW(cudaStreamBeginCapture), stream, mode), stream, at);
}

static cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *graph,
                               struct judge_at at) {
    int number;
    enum cudaStreamCaptureStatus before = cudaStreamCaptureStatusNone;
    if (stream && stream != cudaStreamLegacy)
        CALL(BELOW(cudaStreamIsCapturing), stream, &before);
    cudaError_t error = CALL(BELOW(cudaStreamEndCapture), stream, graph);
    if (before == cudaStreamCaptureStatusNone)
        return answer(error, at); // there was none
    if (error == cudaErrorStreamCaptureUnmatched ||
        error == cudaErrorStreamCaptureWrongThread)
        return answer(error, at); // it goes on
    struct judge *j = front_in_stream(stream, -1, &number);
    if (error == cudaErrorStreamCaptureInvalidated && capture_broken_by.call)
        judge_found(j, JUDGE_CAPTURE_BROKEN, -1, at, capture_broken_by);
    capture_broken_by = (struct judge_at){0};
    int made = judge_capture_ends(j, number, error == cudaSuccess);
    if (error == cudaSuccess && graph && *graph && made >= 0)
        keep(&graphs, *graph, made);
    else
        judge_graph_gone(j, made);
    front_out();
    return answer(error, at);
}

ON_STREAM(cudaStreamBeginCapture, begin_capture,
          (cudaStream_t stream, enum cudaStreamCaptureMode mode), stream, mode)
ON_STREAM(cudaStreamEndCapture, end_capture, (cudaStream_t stream, cudaGraph_t *graph),
          stream, graph)

cudaError_t cuda_instantiated(cudaError_t error, const cudaGraphExec_t *executable,
                              cudaGraph_t graph, struct judge_at at) {
    if (error != cudaSuccess)
        return answer(error, at);
    struct judge *j = front_in();
    int number = number_of(&graphs, graph), before = drop(&executables, *executable);
    if (before >= 0) // the handle comes again
        judge_executable_gone(j, before);
    if (number >= 0)
        keep(&executables, *executable, judge_graph_instantiated(j, number, at));
    front_out();
    return error;
}

/* Told before: a launch may wait for other ranks, and they for it. */
static cudaError_t graph_launch(cudaGraphExec_t executable, cudaStream_t stream,
                                struct judge_at at) {
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    int launched = number_of(&executables, executable);
    if (launched >= 0)
        judge_graph_launched(j, launched, number, at);
    else
        judge_op(j, number, NULL, 0, JUDGE_KERNEL, at);
    front_out();
    const struct timeline_op op = {.name = "graph", .at = at};
    return answer(
        ON_TIMELINE(&op, stream, -1, CALL(BELOW(cudaGraphLaunch), executable, stream)),
        at);
}
ON_STREAM(cudaGraphLaunch, graph_launch,
          (cudaGraphExec_t executable, cudaStream_t stream), executable, stream)

/* Forgotten before, since the handle may come again; put back if CUDA has refused it. */
#define DESTROYS(name, table, gone, handle)              \
    ENTER(name, handle);                                 \
    front_in();                                          \
    const int number = drop(table, handle);              \
    front_out();                                         \
    const cudaError_t error = CALL(BELOW(name), handle); \
    struct judge *j = front_in();                        \
    if (error == cudaSuccess)                            \
        gone(j, number);                                 \
    else if (number >= 0)                                \
        keep(table, handle, number);                     \
    front_out();                                         \
    return answer(error, at)

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    DESTROYS(cudaGraphDestroy, &graphs, judge_graph_gone, graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    DESTROYS(cudaGraphExecDestroy, &executables, judge_executable_gone, executable);
}

#if !OVER_STANDIN
/* The executable does from now on what the graph says. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
    ENTER(cudaGraphExecUpdate, executable, graph, result);
    cudaError_t error = CALL(BELOW(cudaGraphExecUpdate), executable, graph, result);
    if (error == cudaErrorGraphExecUpdateFailure)
        return error; // an answer: instantiate it anew
    if (error == cudaSuccess)
        TELL(judge_executable_gone, drop(&executables, executable));
    return cuda_instantiated(error, &executable, graph, at);
}

#if CUDART_VERSION >= 12030
/* What the graph had before is not seen. */
static cudaError_t begin_capture_to_graph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *nodes,
                                          const cudaGraphEdgeData *edges, size_t n,
                                          enum cudaStreamCaptureMode mode,
                                          struct judge_at at) {
    return capture_begun(
        CALL(BELOW(cudaStreamBeginCaptureToGraph), stream, graph, nodes, edges, n, mode),
        stream, at);
}
ON_STREAM(cudaStreamBeginCaptureToGraph, begin_capture_to_graph,
          (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
           const cudaGraphEdgeData *edges, size_t n, enum cudaStreamCaptureMode mode),
          stream, graph, nodes, edges, n, mode)
#endif
#endif
