/*
 * graph.c has the graphs: captured from streams, and launched as often as wanted.
 *
 * The nodes of a graph form lanes, which may run side by side; each comes after the nodes
 * that it came after when it was captured. The launches of one executable graph follow
 * one another, on whatever streams. CUDA Runtime API, "Graph Management".
 */
#include "cuda/capture.h"
#include "standin.h"
#include "cuda/device.h"

struct CUgraph_st {
    struct nodes nodes;
};

struct CUgraphExec_st {
    struct nodes nodes;
    int *lanes;              // of each node; lane 0 is the stream that it is launched on
    struct stream **streams; // of the other lanes; [0] is not used
    int nlanes;
    bool launched;
    struct mark end; // of its newest launch
};

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    CUDA_CALL;
    if (!handle || handle == cudaStreamLegacy)
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    struct stream *stream = stream_of(handle, device_now());
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    return cuda_error(capture_begin(stream, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!out)
        return cuda_error(cudaErrorInvalidValue);
    struct nodes nodes = {0};
    cudaError_t error = capture_end(stream, &nodes);
    if (error != cudaErrorIllegalState)
        *out = NULL;
    if (error != cudaSuccess)
        return cuda_error(error);
    *out = base_alloc(sizeof **out);
    (*out)->nodes = nodes;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  enum cudaStreamCaptureStatus *status) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!status)
        return cuda_error(cudaErrorInvalidValue);
    if (capture_in_the_way(stream))
        return cuda_error(cudaErrorStreamCaptureImplicit);
    *status = !stream->capture         ? cudaStreamCaptureStatusNone
              : capture_spoilt(stream) ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

static struct nodes nodes_copy(const struct nodes *from) {
    struct nodes to = {base_alloc((size_t)(from->n + 1) * sizeof *to.all), from->n};
    for (int i = 0; i < to.n; i++) {
        const struct node *node = &from->all[i];
        to.all[i] = (struct node){.op = node->op->copy(node->op), .device = node->device};
        point_add(&to.all[i].after, &node->after);
    }
    return to;
}

/* A node goes into the lane of a node that it comes after, if it is the next there. */
static void find_lanes(struct CUgraphExec_st *exec) {
    const struct nodes *nodes = &exec->nodes;
    int *last = base_alloc((size_t)(nodes->n + 1) * sizeof *last); // node, of each lane
    exec->lanes = base_alloc((size_t)(nodes->n + 1) * sizeof *exec->lanes);
    exec->streams = base_alloc((size_t)(nodes->n + 1) * sizeof *exec->streams);
    for (int i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->all[i];
        int lane = -1;
        for (int k = 0; k < node->after.n && lane < 0; k++) {
            int before = node->after.nodes[k];
            if (last[exec->lanes[before]] == before &&
                nodes->all[before].device == node->device)
                lane = exec->lanes[before];
        }
        if (lane < 0) {
            lane = exec->nlanes++;
            if (lane > 0) {
                exec->streams[lane] = stream_create(node->device, false);
                exec->streams[lane]->internal = true;
            }
        }
        exec->lanes[i] = lane;
        last[lane] = i;
    }
    free(last);
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph) {
    if (!out || !graph)
        return cuda_error(cudaErrorInvalidValue);
    struct CUgraphExec_st *exec = *out = base_alloc(sizeof *exec);
    exec->nodes = nodes_copy(&graph->nodes);
    find_lanes(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
    CUDA_CALL;
    (void)flags;
    return instantiate(out, graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags) {
    CUDA_CALL;
    (void)flags;
    return instantiate(out, graph);
}

/* Into the graph that the stream is captured for. */
static cudaError_t launch_captured(const struct CUgraphExec_st *exec,
                                   struct stream *stream) {
    uint64_t number = capture_number(stream);
    struct point begin = {0}, end = {0}, *at;
    at = base_alloc((size_t)(exec->nodes.n + 1) * sizeof *at);
    point_add(&begin, capture_point(stream));
    for (int i = 0; i < exec->nodes.n; i++) {
        const struct node *node = &exec->nodes.all[i];
        struct stream *own = stream_create(node->device, false);
        capture_wait(own, number, &begin);
        for (int k = 0; k < node->after.n; k++)
            capture_wait(own, number, &at[node->after.nodes[k]]);
        op_enqueue(node->op->copy(node->op), own);
        point_add(&at[i], capture_point(own));
        point_add(&end, &at[i]);
        stream_retire(own); // goes when the capture ends
    }
    capture_wait(stream, number, &end);
    for (int i = 0; i < exec->nodes.n; i++)
        free(at[i].nodes);
    free(at);
    free(begin.nodes);
    free(end.nodes);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    if (!exec)
        return cuda_error(cudaErrorInvalidValue);
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (capture_in_the_way(stream))
        return cuda_error(cudaErrorStreamCaptureImplicit);
    if (stream->capture)
        return cuda_error(launch_captured(exec, stream));
    if (device_broken(stream->device) != cudaSuccess)
        return cuda_error(device_broken(stream->device));
    const struct nodes *nodes = &exec->nodes;
    struct mark *marks = base_alloc((size_t)(nodes->n + 1) * sizeof *marks);
    struct op *begin = op_nothing();
    if (clock_on)
        clock_host_spends(clock_graph());
    standin_unpaid(1);
    if (exec->launched)
        op_after(begin, exec->end);
    op_enqueue(begin, stream);
    struct mark begun = stream_end(stream);
    for (int i = 0; i < nodes->n; i++) {
        const struct node *node = &nodes->all[i];
        struct stream *lane =
            exec->lanes[i] == 0 ? stream : exec->streams[exec->lanes[i]];
        struct op *op = node->op->copy(node->op);
        if (clock_on && op->cost.units > 0)
            clock_recorded(&op->cost);
        op_after(op, begun);
        for (int k = 0; k < node->after.n; k++)
            op_after(op, marks[node->after.nodes[k]]);
        op_enqueue(op, lane);
        marks[i] = stream_end(lane);
    }
    struct op *end = op_nothing();
    for (int lane = 1; lane < exec->nlanes; lane++)
        op_after(end, stream_end(exec->streams[lane]));
    op_enqueue(end, stream);
    standin_unpaid(0);
    exec->launched = true;
    exec->end = stream_end(stream);
    free(marks);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    CUDA_CALL;
    if (!exec)
        return cuda_error(cudaErrorInvalidValue);
    for (int lane = 1; lane < exec->nlanes; lane++)
        stream_retire(exec->streams[lane]);
    nodes_free(&exec->nodes);
    free(exec->lanes);
    free(exec->streams);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    CUDA_CALL;
    if (!graph)
        return cuda_error(cudaErrorInvalidValue);
    nodes_free(&graph->nodes);
    free(graph);
    return cudaSuccess;
}
