/* nodes.h: graphs, and what becomes a node of one without being captured. */
#ifndef CPU_NODES_H
#define CPU_NODES_H

#include "cuda/capture.h"

struct CUgraphNode_st { // the program's handle
    cudaGraph_t graph;
    int number; // among the graph's nodes
};

struct held { // an object of the program's that a graph holds
    cudaUserObject_t object;
    unsigned count;
    struct held *next;
};

struct CUgraph_st {
    struct nodes nodes;              // an edge may lead to an earlier one
    struct CUgraphNode_st **handles; // of those that the program has asked for
    int nhandles;
    struct held *held;
};

struct CUgraphExec_st {
    struct nodes nodes;      // in an order in which they may be done
    int *lanes;              // of each node; lane 0 is the stream that it is launched on
    struct stream **streams; // of the other lanes; [0] is not used
    int nlanes;
    bool launched;
    struct mark end; // of its newest launch
    struct held *held;
};

/* Where the edges form a circle there is no order: false. */
bool nodes_in_order(struct nodes *to, const struct nodes *from);
struct held *held_copy(const struct held *held);
void held_release(struct held **held);

/* Operations for a graph; NULL: the memory cannot be used. */
struct op *copy_node(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                     size_t width, size_t rows, int device);
struct op *set_node(void *to, int value, size_t width, size_t rows, size_t pitch,
                    int device);
struct op *event_record_op(cudaEvent_t event);
struct op *event_wait_op(cudaEvent_t event);
bool event_is_known(cudaEvent_t event);

/* What stands in the way of any use of the stream; NULL is no stream. */
cudaError_t stream_in_use(const struct stream *stream);

#endif
