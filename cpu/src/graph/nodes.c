/*
 * nodes.c has the graphs that a program puts together node by node, asks about, or
 * changes. CUDA Runtime API, "Graph Management".
 */
#include "graph/nodes.h"

#include "cuda/device.h"

/* --- Orders ------------------------------------------------------------------------ */

/* Whether all that node `i` comes after is placed already. */
static bool may_be_placed(const struct nodes *from, int i, const int *place) {
    for (int k = 0; k < from->all[i].after.n; k++)
        if (place[from->all[i].after.nodes[k]] < 0)
            return false;
    return true;
}

bool nodes_in_order(struct nodes *to, const struct nodes *from) {
    size_t n = (size_t)from->n + 1;
    int *place = must_alloc(n * sizeof *place), *order = must_alloc(n * sizeof *order);
    int placed = 0;
    for (int i = 0; i < from->n; i++)
        place[i] = -1;
    for (bool further = true; further;) {
        further = false;
        for (int i = 0; i < from->n; i++)
            if (place[i] < 0 && may_be_placed(from, i, place)) {
                order[placed] = i;
                place[i] = placed++;
                further = true;
            }
    }
    bool all = placed == from->n;
    to->n = all ? placed : 0;
    to->all = must_alloc(n * sizeof *to->all);
    for (int p = 0; p < to->n; p++) {
        const struct node *node = &from->all[order[p]];
        to->all[p] =
            (struct node){.op = node->op->copy(node->op), .device = node->device};
        struct point *after = &to->all[p].after;
        after->nodes = must_alloc((size_t)(node->after.n + 1) * sizeof *after->nodes);
        for (int k = 0; k < node->after.n; k++)
            after->nodes[after->n++] = place[node->after.nodes[k]];
    }
    free(place);
    free(order);
    return all;
}

/* --- Nodes ------------------------------------------------------------------------- */

static cudaGraphNode_t handle_of(cudaGraph_t graph, int number) {
    for (int i = 0; i < graph->nhandles; i++)
        if (graph->handles[i]->number == number)
            return graph->handles[i];
    struct CUgraphNode_st *made = must_alloc(sizeof *made);
    *made = (struct CUgraphNode_st){graph, number};
    graph->handles =
        must_grow(graph->handles, (size_t)(graph->nhandles + 1) * sizeof *graph->handles);
    return graph->handles[graph->nhandles++] = made;
}

static bool all_of_graph(cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t n) {
    if (n > 0 && !nodes)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!nodes[i] || nodes[i]->graph != graph)
            return false;
    return true;
}

/* What every call that adds one checks. */
static bool can_add(const cudaGraphNode_t *out, cudaGraph_t graph,
                    const cudaGraphNode_t *after, size_t n) {
    return out && graph && all_of_graph(graph, after, n);
}

static struct node *append(cudaGraph_t graph, struct op *op, int device) {
    struct nodes *nodes = &graph->nodes;
    nodes->all = must_grow(nodes->all, (size_t)(nodes->n + 1) * sizeof *nodes->all);
    struct node *node = &nodes->all[nodes->n++];
    *node = (struct node){.op = op, .device = device};
    return node;
}

static void comes_after(struct node *node, const cudaGraphNode_t *after, size_t n) {
    for (size_t i = 0; i < n; i++)
        point_add(&node->after, &(struct point){&after[i]->number, 1});
}

/* NULL: there is nothing that could be done. */
static cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph,
                       const cudaGraphNode_t *after, size_t n, struct op *op) {
    if (!op)
        return cuda_error(cudaErrorInvalidValue);
    comes_after(append(graph, op, device_now()), after, n);
    *out = handle_of(graph, graph->nodes.n - 1);
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned int flags) {
    CUDA_CALL;
    if (!out || flags != 0)
        return cuda_error(cudaErrorInvalidValue);
    *out = must_alloc(sizeof **out);
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph) {
    CUDA_CALL;
    if (!out || !graph)
        return cuda_error(cudaErrorInvalidValue);
    struct CUgraph_st *made = must_alloc(sizeof *made);
    made->nodes.all = must_alloc((size_t)(graph->nodes.n + 1) * sizeof *made->nodes.all);
    for (int i = 0; i < graph->nodes.n; i++) {
        const struct node *node = &graph->nodes.all[i];
        made->nodes.all[i] = *node;
        made->nodes.all[i].op = node->op->copy(node->op);
        made->nodes.all[i].after = (struct point){0};
        point_add(&made->nodes.all[i].after, &node->after);
    }
    made->nodes.n = graph->nodes.n;
    made->held = held_copy(graph->held);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                  const cudaGraphNode_t *after, size_t n) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n))
        return cuda_error(cudaErrorInvalidValue);
    return add(out, graph, after, n, op_nothing());
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t n, void *to,
                                     const void *from, size_t bytes,
                                     enum cudaMemcpyKind kind) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || (unsigned)kind > cudaMemcpyDefault)
        return cuda_error(cudaErrorInvalidValue);
    return add(out, graph, after, n,
               copy_node(to, bytes, from, bytes, bytes, 1, device_now()));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t n,
                                   const struct cudaMemcpy3DParms *p) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || !p)
        return cuda_error(cudaErrorInvalidValue);
    if (p->srcArray || p->dstArray || p->extent.depth != 1 || p->srcPos.z || p->dstPos.z)
        return cuda_error(cudaErrorNotSupported);
    const struct cudaPitchedPtr *to = &p->dstPtr, *from = &p->srcPtr;
    return add(out, graph, after, n,
               copy_node((char *)to->ptr + p->dstPos.x + p->dstPos.y * to->pitch,
                         to->pitch,
                         (char *)from->ptr + p->srcPos.x + p->srcPos.y * from->pitch,
                         from->pitch, p->extent.width, p->extent.height, device_now()));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t n,
                                   const struct cudaMemsetParams *p) {
    CUDA_CALL;
    // Larger elements are those whose bytes are all the same.
    if (!can_add(out, graph, after, n) || !p ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return cuda_error(cudaErrorInvalidValue);
    unsigned byte = p->value & 0xff, all = byte * 0x01010101u;
    if (p->elementSize > 1 && (all ^ p->value) << (32 - 8 * p->elementSize) != 0)
        return cuda_error(cudaErrorNotSupported);
    size_t width = p->width * p->elementSize;
    return add(out, graph, after, n,
               set_node(p->dst, (int)byte, width, p->height,
                        p->height > 1 ? p->pitch : width, device_now()));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, size_t n,
                                 const struct cudaHostNodeParams *p) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || !p || !p->fn)
        return cuda_error(cudaErrorInvalidValue);
    return add(out, graph, after, n, hostfunc_op(p->fn, p->userData));
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t n,
                                        cudaEvent_t event) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || !event_is_known(event))
        return cuda_error(cudaErrorInvalidValue);
    return add(out, graph, after, n, event_record_op(event));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                      const cudaGraphNode_t *after, size_t n,
                                      cudaEvent_t event) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || !event_is_known(event))
        return cuda_error(cudaErrorInvalidValue);
    return add(out, graph, after, n, event_wait_op(event));
}

/* The nodes of the child, and one that comes after them, stand in the graph themselves.
 */
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t n,
                                       cudaGraph_t child) {
    CUDA_CALL;
    if (!can_add(out, graph, after, n) || !child || child == graph)
        return cuda_error(cudaErrorInvalidValue);
    int first = graph->nodes.n, has = child->nodes.n;
    struct point all = {0};
    for (int i = 0; i < has; i++) {
        const struct node *node = &child->nodes.all[i];
        struct node *mine = append(graph, node->op->copy(node->op), node->device);
        mine->inner = true;
        for (int k = 0; k < node->after.n; k++) {
            int earlier = first + node->after.nodes[k];
            point_add(&mine->after, &(struct point){&earlier, 1});
        }
        comes_after(mine, after, n);
        point_add(&all, &(struct point){&(int){first + i}, 1});
    }
    struct op *op = op_nothing();
    op->type = cudaGraphNodeTypeGraph;
    struct node *end = append(graph, op, device_now());
    comes_after(end, after, n);
    point_add(&end->after, &all);
    free(all.nodes);
    end->has = has;
    *out = handle_of(graph, first + has);
    return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t n) {
    CUDA_CALL;
    (void)edges;
    if (!graph || !all_of_graph(graph, from, n) || !all_of_graph(graph, to, n))
        return cuda_error(cudaErrorInvalidValue);
    for (size_t i = 0; i < n; i++)
        for (int has = graph->nodes.all[to[i]->number].has; has >= 0; has--)
            comes_after(&graph->nodes.all[to[i]->number - has], &from[i], 1);
    return cudaSuccess;
}

/* --- Questions --------------------------------------------------------------------- */

static cudaError_t list(cudaGraph_t graph, cudaGraphNode_t *out, size_t *n, bool roots) {
    size_t found = 0;
    if (!graph || !n)
        return cuda_error(cudaErrorInvalidValue);
    for (int i = 0; i < graph->nodes.n; i++) {
        const struct node *node = &graph->nodes.all[i];
        if (node->inner || (roots && node->after.n > node->has))
            continue;
        if (out && found < *n)
            out[found] = handle_of(graph, i);
        found++;
    }
    for (size_t i = found; out && i < *n; i++)
        out[i] = NULL;
    if (!out || found < *n)
        *n = found;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n) {
    CUDA_CALL;
    return list(graph, nodes, n, false);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n) {
    CUDA_CALL;
    return list(graph, nodes, n, true);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
    CUDA_CALL;
    if (!node || !type)
        return cuda_error(cudaErrorInvalidValue);
    *type = (enum cudaGraphNodeType)node->graph->nodes.all[node->number].op->type;
    return cudaSuccess;
}

/* --- Updates ----------------------------------------------------------------------- */

static bool same_points(const struct point *a, const struct point *b) {
    return a->n == b->n && memcmp(a->nodes, b->nodes, (size_t)a->n * sizeof(int)) == 0;
}

static enum cudaGraphExecUpdateResult compare(const struct nodes *a,
                                              const struct nodes *b) {
    if (a->n != b->n)
        return cudaGraphExecUpdateErrorTopologyChanged;
    for (int i = 0; i < a->n; i++)
        if (a->all[i].op->type != b->all[i].op->type)
            return cudaGraphExecUpdateErrorNodeTypeChanged;
        else if (a->all[i].after.n > 0 &&
                 !same_points(&a->all[i].after, &b->all[i].after))
            return cudaGraphExecUpdateErrorTopologyChanged;
    return cudaGraphExecUpdateSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
    CUDA_CALL;
    struct nodes nodes = {0};
    if (!exec || !graph || !result)
        return cuda_error(cudaErrorInvalidValue);
    *result = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateError};
    if (nodes_in_order(&nodes, &graph->nodes))
        result->result = compare(&exec->nodes, &nodes);
    if (result->result != cudaGraphExecUpdateSuccess) {
        nodes_free(&nodes);
        return cuda_error(cudaErrorGraphExecUpdateFailure);
    }
    nodes_free(&exec->nodes);
    exec->nodes = nodes;
    return cudaSuccess;
}

/* --- What the program lets a graph hold -------------------------------------------- */

struct CUuserObject_st {
    unsigned count;
    void *pointer;
    cudaHostFn_t destroy;
};

static void let_go(cudaUserObject_t object, unsigned count) {
    object->count = object->count > count ? object->count - count : 0;
    if (object->count > 0)
        return;
    object->destroy(object->pointer);
    free(object);
}

struct held *held_copy(const struct held *held) {
    struct held *first = NULL;
    for (; held; held = held->next) {
        struct held *one = must_alloc(sizeof *one);
        *one = (struct held){held->object, held->count, first};
        held->object->count += held->count;
        first = one;
    }
    return first;
}

void held_release(struct held **held) {
    while (*held) {
        struct held *one = *held;
        *held = one->next;
        let_go(one->object, one->count);
        free(one);
    }
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *pointer,
                                 cudaHostFn_t destroy, unsigned int count,
                                 unsigned int flags) {
    CUDA_CALL;
    if (!out || !destroy || count == 0 || flags != cudaUserObjectNoDestructorSync)
        return cuda_error(cudaErrorInvalidValue);
    *out = must_alloc(sizeof **out);
    **out = (struct CUuserObject_st){count, pointer, destroy};
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
    CUDA_CALL;
    if (!object || count == 0)
        return cuda_error(cudaErrorInvalidValue);
    object->count += count;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
    CUDA_CALL;
    if (!object || count == 0 || count > object->count)
        return cuda_error(cudaErrorInvalidValue);
    let_go(object, count);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
    CUDA_CALL;
    if (!graph || !object || count == 0 || flags & ~(unsigned)cudaGraphUserObjectMove)
        return cuda_error(cudaErrorInvalidValue);
    struct held *one = must_alloc(sizeof *one);
    *one = (struct held){object, count, graph->held};
    graph->held = one;
    if (!(flags & cudaGraphUserObjectMove))
        object->count += count;
    return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count) {
    CUDA_CALL;
    struct held **at = graph ? &graph->held : NULL;
    while (at && *at && (*at)->object != object)
        at = &(*at)->next;
    if (!at || !*at || count == 0 || count > (*at)->count)
        return cuda_error(cudaErrorInvalidValue);
    struct held *one = *at;
    one->count -= count;
    if (one->count == 0) {
        *at = one->next;
        free(one);
    }
    let_go(object, count);
    return cudaSuccess;
}
