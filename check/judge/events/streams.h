/*
 * streams.h: what is queued: streams, operations, events, functions, graphs.
 */
#ifndef EVENTS_STREAMS_H
#define EVENTS_STREAMS_H

#include "events/memory.h"

/* How a stream takes part in the default stream's order (CUDA Runtime API, "Stream
 * synchronization behavior"). */
enum judge_stream_kind { JUDGE_BLOCKING, JUDGE_NON_BLOCKING, JUDGE_LEGACY };

/* Numbers for all that follows are >= 0 and given out by the judge; what is told of one
 * that was not, or not any more, is passed over. */
int judge_stream_made(struct judge *j, enum judge_stream_kind kind, int device,
                      struct judge_at at);
void judge_stream_gone(struct judge *j, int stream); // what is in it still happens

enum judge_op_kind {
    JUDGE_COPY,      // of the whole ranges
    JUDGE_COPY_ROWS, // with gaps between the rows
    JUDGE_SET,
    JUDGE_COMPUTES,     // cuBLAS
    JUDGE_KERNEL,       // what it uses is not known
    JUDGE_KERNEL_MEETS, // likewise, and it may wait for kernels of other ranks
    // Into a window of another rank, or only signals it; signals of others
    // (ncclWaitSignal).
    JUDGE_PUTS,
    JUDGE_AWAITS
};

/* An operation is queued; ranges outside known memory are passed over, those that run
 * past the end of an allocation or into freed memory are wrong. True if something was
 * wrong with its ranges. */
bool judge_op(struct judge *j, int stream, const struct judge_range *ranges, int n,
              enum judge_op_kind kind, struct judge_at at);

/* cudaLaunchHostFunc. The front calls the other two in the thread that runs the function;
 * with the number that the first returned. What is called in between, is called by the
 * function. */
int judge_host_function(struct judge *j, int stream, struct judge_at at);
void judge_host_function_begins(struct judge *j, int function);
void judge_host_function_ends(struct judge *j, int function);

/* An operation of a library is about to be queued, whose handle was made for `device`, by
 * `made`. True if the stream is one of another device: reported. */
bool judge_handle_device(struct judge *j, int stream, int device, struct judge_at made,
                         struct judge_at at);

int judge_event_made(struct judge *j, struct judge_at at);
void judge_event_gone(struct judge *j, int event);
/* Other processes record one of the events, and wait for it: from then on, what comes
 * before what is not known. */
void judge_shares_event(struct judge *j);
void judge_record(struct judge *j, int event, int stream, struct judge_at at);
void judge_stream_waits(struct judge *j, int stream, int event, struct judge_at at);

/* Capture. Whatever is queued on a capturing stream belongs to the graph; a stream that
 * waits for an event recorded in the capture joins it. The front passes on only what the
 * library accepted. */
void judge_capture_begins(struct judge *j, int stream, struct judge_at at);
// the graph's number; -1
int judge_capture_ends(struct judge *j, int stream, bool success);
// executable's number
int judge_graph_instantiated(struct judge *j, int graph, struct judge_at at);
void judge_graph_launched(struct judge *j, int executable, int stream,
                          struct judge_at at);
void judge_graph_gone(struct judge *j, int graph);
void judge_executable_gone(struct judge *j, int executable);

#endif
