/*
 * cuda_graphs.h: the part of cuda_runtime.h of the CPU build for graphs: captured from
 * streams, or put together node by node. It is included there.
 */
#ifndef CUDA_GRAPHS_H_CPU
#define CUDA_GRAPHS_H_CPU

/* ---------------------------------------------------------------- graphs
 * CUDA Runtime API, Stream Management and Graph Management. */

/* From now on, what is queued on `stream` is written into a graph instead of being done.
 * The default stream can't be captured: cudaErrorStreamCaptureUnsupported; a stream that
 * is being captured already: cudaErrorIllegalState. */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);

/* Ends the capture and writes the graph. A stream that is not being captured:
 * cudaErrorIllegalState; one that only joined the capture:
 * cudaErrorStreamCaptureUnmatched. Otherwise it writes null and returns
 * cudaErrorStreamCaptureInvalidated if a call broke a rule in between, and
 * cudaErrorStreamCaptureUnjoined if work of another stream was not waited for. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);

/* Sets this thread's own mode, and writes the one before (first: Global). While a stream
 * is captured, calls that allocate, wait, or ask how far other work is return
 * cudaErrorStreamCaptureUnsupported, and make the capture invalid: in this thread, unless
 * the capture or the thread is Relaxed; in another one, if both are Global. */
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);

/* Writes whether `stream` is being captured. */
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *pCaptureStatus);

/* Makes of `graph` something that can be launched, as often as wanted; the graph may be
 * destroyed afterwards. `flags` is a sum of cudaGraphInstantiateFlag… or 0. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags CUDA_CPU_DEFAULT(0));

/* Queues the whole graph on `stream`, in order with what else is queued there, and after
 * earlier launches of the same graphExec on any stream. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream);

/* Gives up what cudaGraphInstantiate made; a launch under way still finishes. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

/* Gives up the graph; what was instantiated from it stays. */
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* The same with the flags in their own name. */
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags CUDA_CPU_DEFAULT(0));

/* What a launch would have to bring to the device first: nothing, here. */
cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream);

/* ---------------------------------------------------------------- nodes
 * CUDA Runtime API, Graph Management. A node is added after those at `pDependencies`. A
 * node that is none of this graph: cudaErrorInvalidValue. */

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree = 11
};

enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3
};

typedef struct cudaGraphExecUpdateResultInfo_st {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

typedef struct cudaGraphEdgeData_st {
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;

struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};

struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned int value, elementSize; /* of 1, 2 or 4 bytes */
    size_t width, height;            /* elements in a row, and rows */
};

enum cudaUserObjectFlags { cudaUserObjectNoDestructorSync = 1 };
enum cudaUserObjectRetainFlags { cudaGraphUserObjectMove = 1 };
typedef struct CUuserObject_st *cudaUserObject_t;

/* Makes an empty graph; flags is 0. */
cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags);
cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph);

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                  const cudaGraphNode_t *pDependencies,
                                  size_t numDependencies);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies,
                                     size_t numDependencies, void *dst, const void *src,
                                     size_t count, enum cudaMemcpyKind kind);
/* The same of several rows; one slice, and no arrays: else cudaErrorNotSupported. */
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies,
                                   const struct cudaMemcpy3DParms *pCopyParams);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies,
                                   const struct cudaMemsetParams *pMemsetParams);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                 const cudaGraphNode_t *pDependencies,
                                 size_t numDependencies,
                                 const struct cudaHostNodeParams *pNodeParams);
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, cudaEvent_t event);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies,
                                      size_t numDependencies, cudaEvent_t event);
/* What `childGraph` does now becomes one node. */
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies,
                                       size_t numDependencies, cudaGraph_t childGraph);
/* Each to[i] comes after from[i], too. `edgeData` is null, or all zeros. */
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edgeData,
                                     size_t numDependencies);

/* Writes so many nodes as there is room for (*numNodes), and how many there are; without
 * `nodes` the number only. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                              size_t *numNodes);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
                                  size_t *pNumRootNodes);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType);

/* The executable graph does from now on what `hGraph` says. As many nodes in the same
 * order are demanded, else cudaErrorGraphExecUpdateFailure: instantiate it anew. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo *resultInfo);

/* Whether the stream is being captured, and the number of the capture. The graph and its
 * nodes are not given: null, and 0 of them. */
cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t stream,
                         enum cudaStreamCaptureStatus *captureStatus_out,
                         unsigned long long *id_out CUDA_CPU_DEFAULT(0),
                         cudaGraph_t *graph_out CUDA_CPU_DEFAULT(0),
                         const cudaGraphNode_t **dependencies_out CUDA_CPU_DEFAULT(0),
                         const cudaGraphEdgeData **edgeData_out CUDA_CPU_DEFAULT(0),
                         size_t *numDependencies_out CUDA_CPU_DEFAULT(0));

/* Something of the program's that goes, by destroy(ptr), when nobody holds it any more:
 * neither the program nor a graph. flags is cudaUserObjectNoDestructorSync. */
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr,
                                 cudaHostFn_t destroy, unsigned int initialRefcount,
                                 unsigned int flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object,
                                 unsigned int count CUDA_CPU_DEFAULT(1));
cudaError_t cudaUserObjectRelease(cudaUserObject_t object,
                                  unsigned int count CUDA_CPU_DEFAULT(1));
/* The graph holds it from now on; with cudaGraphUserObjectMove instead of the program. */
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count CUDA_CPU_DEFAULT(1),
                                      unsigned int flags CUDA_CPU_DEFAULT(0));
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count CUDA_CPU_DEFAULT(1));

#endif
