/*
 * graphs.h: captures and what a launch of them does.
 */
#ifndef GRAPHS_H
#define GRAPHS_H

#include "history/streams.h"

struct graphs {
    struct numbers graphs, executables;
    uint64_t captures; // so far
};
void graphs_free(struct graphs *graphs);
void graph_stream_gone(struct judge *j, int stream);
/* Into the graph that `stream` is captured into. It makes memory; `awaits`: enum
 * awaits. */
void graph_op(struct judge *j, struct stream *stream, const struct judge_range *ranges,
              int n, bool makes, int awaits, struct judge_at at);
void graph_function(struct stream *stream, int function, struct judge_at at);
void graph_record(struct stream *stream, struct event *event);
/* True if the wait belongs to a graph, which the stream then belongs to. */
bool graph_waits(struct judge *j, struct stream *stream, int event);
/* Those of the calls that belong to a graph; leaves the others, and returns how many. */
int graph_calls(struct judge *j, struct judge_call *calls, int n);
void graph_calls_failed(struct judge *j, int stream); // the newest of its graph
/* The communicator is destroyed: NCCL waits until no graph holds a call on it any more
 * (its source, commDestroySync: "keep polling until all graphs referencing us die"). */
void graph_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at);
void graphs_left(struct judge *j, struct text *text);

#endif
