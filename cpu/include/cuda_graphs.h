/*
 * cuda_graphs.h: the part of cuda_runtime.h of the CPU build for graphs, which are
 * captured from streams. It is included there.
 */
#ifndef CUDA_GRAPHS_H_CPU
#define CUDA_GRAPHS_H_CPU

/* ---------------------------------------------------------------- graphs
 * CUDA Runtime API, Stream Management and Graph Management. */

/* From now on, what is queued on `stream` is written into a graph instead of being done.
 * The default stream can't be captured: cudaErrorStreamCaptureUnsupported; a stream that
 * is being captured already: cudaErrorIllegalState. While it lasts, calls that allocate,
 * wait, or ask how far other work is return cudaErrorStreamCaptureUnsupported, and make
 * the capture invalid: in any thread (Global), in this one (ThreadLocal), or in none
 * (Relaxed). */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);

/* Ends the capture and writes the graph. A stream that is not being captured:
 * cudaErrorIllegalState; one that only joined the capture:
 * cudaErrorStreamCaptureUnmatched. Otherwise it writes null and returns
 * cudaErrorStreamCaptureInvalidated if a call broke a rule in between, and
 * cudaErrorStreamCaptureUnjoined if work of another stream was not waited for. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph);

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

/* On a GPU the first launch finds less to do then; here there is nothing to prepare. */
#define cudaGraphUpload(graphExec, stream) \
    ((void)(stream), (graphExec) ? cudaSuccess : cudaErrorInvalidValue)

/* Gives up what cudaGraphInstantiate made; a launch under way still finishes. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec);

/* Gives up the graph; what was instantiated from it stays. */
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* The same with the flags in their own name. */
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags CUDA_CPU_DEFAULT(0));

#endif
