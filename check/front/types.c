/*
 * types.c: where the bytes of a message lie, if its type has holes, and the neighbours of
 * a communicator with a topology.
 *
 * A message is the bytes of the type map; what lies between them is nobody's business
 * (MPI standard, "Derived Datatypes"; "Process Topologies").
 */
#include "types.h"

#include "../base.h"

#include <stdlib.h>
#include <string.h>

/* --- Types ------------------------------------------------------------------------ */

enum { LIMIT = 1 << 14, AT_MOST = 64 }; // blocks that are counted; that are told

struct walk {
    size_t n, step; // every step-th is told
    bool unknown;
    void (*each)(void *self, const char *start, size_t bytes); // NULL: only counted
    void *self;
};

static void elements(struct walk *w, const char *at, MPI_Aint count, MPI_Datatype type);

static void block(struct walk *w, const char *start, size_t bytes) {
    if (w->each && w->n % w->step == 0)
        w->each(w->self, start, bytes);
    w->unknown |= ++w->n > LIMIT;
}

static MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint low, extent;
    PMPI_Type_get_extent(type, &low, &extent);
    return extent;
}

/* MPI_Type_create_subarray: dimensions, sizes, sizes of the part, where it starts, and
 * which index runs fastest. */
static void subarray(struct walk *w, const char *at, const int *ints, MPI_Datatype old) {
    const int n = ints[0], *sizes = &ints[1], *part = sizes + n, *start = part + n;
    bool c = start[n] == MPI_ORDER_C;
    MPI_Aint extent = extent_of(old);
    size_t rows = 1;
    int fastest = c ? n - 1 : 0;
    for (int d = 0; d < n; d++)
        rows *= d == fastest ? 1 : (size_t)part[d];
    for (size_t row = 0; row < rows && !w->unknown; row++) {
        MPI_Aint offset = start[fastest], stride = sizes[fastest];
        size_t left = row;
        for (int k = 1; k < n; k++) {
            int d = c ? n - 1 - k : k;
            offset += (start[d] + (MPI_Aint)(left % (size_t)part[d])) * stride;
            left /= (size_t)part[d];
            stride *= sizes[d];
        }
        elements(w, at + offset * extent, part[fastest], old);
    }
}

static void pieces(struct walk *w, const char *at, int combiner, const int *ints,
                   const MPI_Aint *addresses, const MPI_Datatype *types) {
    MPI_Aint extent = extent_of(types[0]);
    int n = ints ? ints[0] : 0;
    switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: elements(w, at, 1, types[0]); return;
    case MPI_COMBINER_CONTIGUOUS: elements(w, at, n, types[0]); return;
    case MPI_COMBINER_SUBARRAY: subarray(w, at, ints, types[0]); return;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case MPI_COMBINER_STRUCT: break;
    default: w->unknown = true; return;
    }
    for (int i = 0; i < n && !w->unknown; i++)
        switch (combiner) {
        case MPI_COMBINER_VECTOR:
            elements(w, at + i * ints[2] * extent, ints[1], types[0]);
            break;
        case MPI_COMBINER_HVECTOR:
            elements(w, at + i * addresses[0], ints[1], types[0]);
            break;
        case MPI_COMBINER_INDEXED:
            elements(w, at + ints[1 + n + i] * extent, ints[1 + i], types[0]);
            break;
        case MPI_COMBINER_HINDEXED:
            elements(w, at + addresses[i], ints[1 + i], types[0]);
            break;
        case MPI_COMBINER_INDEXED_BLOCK:
            elements(w, at + ints[2 + i] * extent, ints[1], types[0]);
            break;
        case MPI_COMBINER_HINDEXED_BLOCK:
            elements(w, at + addresses[i], ints[1], types[0]);
            break;
        default: elements(w, at + addresses[i], ints[1 + i], types[i]);
        }
}

/* One element of a type with holes. */
static void element(struct walk *w, const char *at, MPI_Datatype type) {
    int nints, naddresses, ntypes, combiner;
    PMPI_Type_get_envelope(type, &nints, &naddresses, &ntypes, &combiner);
    if (combiner == MPI_COMBINER_NAMED) { // a pair, as MPI_SHORT_INT: its first byte
        block(w, at, 1);
        return;
    }
    int *ints = must_alloc((size_t)(nints + 1) * sizeof *ints);
    MPI_Aint *addresses = must_alloc((size_t)(naddresses + 1) * sizeof *addresses);
    MPI_Datatype *types = must_alloc((size_t)(ntypes + 1) * sizeof *types);
    PMPI_Type_get_contents(type, nints, naddresses, ntypes, ints, addresses, types);
    if (ntypes > 0)
        pieces(w, at, combiner, ints, addresses, types);
    else
        w->unknown = true;
    for (int i = 0; i < ntypes; i++) {
        int ignored[3], named;
        PMPI_Type_get_envelope(types[i], &ignored[0], &ignored[1], &ignored[2], &named);
        if (named != MPI_COMBINER_NAMED)
            PMPI_Type_free(&types[i]);
    }
    free(ints);
    free(addresses);
    free(types);
}

static void elements(struct walk *w, const char *at, MPI_Aint count, MPI_Datatype type) {
    MPI_Aint low, extent, true_low, true_extent;
    int size;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    if (count <= 0 || size == 0 || w->unknown)
        return;
    if (size == true_extent && (size == extent || count == 1)) {
        block(w, at + true_low, (size_t)count * (size_t)size);
        return;
    }
    for (MPI_Aint i = 0; i < count && !w->unknown; i++)
        if (size == true_extent)
            block(w, at + i * extent + true_low, (size_t)size);
        else
            element(w, at + i * extent, type);
}

bool types_blocks(const char *at, long long count, MPI_Datatype type,
                  void (*each)(void *self, const char *start, size_t bytes), void *self) {
    struct walk counted = {.step = 1}, told = {.each = each, .self = self};
    elements(&counted, at, (MPI_Aint)count, type);
    if (counted.unknown)
        return false;
    told.step = (counted.n + AT_MOST - 1) / AT_MOST;
    elements(&told, at, (MPI_Aint)count, type);
    return true;
}

/* --- Neighbours ------------------------------------------------------------------- */

int types_neighbours(MPI_Comm comm, bool sources, int **out) {
    int kind = MPI_UNDEFINED, rank, n = 0, others = 0, weighted;
    *out = NULL;
    PMPI_Topo_test(comm, &kind);
    PMPI_Comm_rank(comm, &rank);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &n);
        *out = must_alloc((size_t)(2 * n + 1) * sizeof **out);
        for (int d = 0; d < n; d++)
            PMPI_Cart_shift(comm, d, 1, &(*out)[2 * d], &(*out)[2 * d + 1]);
        return 2 * n;
    }
    if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, rank, &n);
        *out = must_alloc((size_t)(n + 1) * sizeof **out);
        PMPI_Graph_neighbors(comm, rank, n, *out);
        return n;
    }
    if (kind != MPI_DIST_GRAPH)
        return 0;
    PMPI_Dist_graph_neighbors_count(comm, &n, &others, &weighted);
    int *in = must_alloc((size_t)(n + 1) * sizeof *in),
        *to = must_alloc((size_t)(others + 1) * sizeof *to),
        *weights = must_alloc((size_t)(n + others + 2) * sizeof *weights);
    PMPI_Dist_graph_neighbors(comm, n, in, weights, others, to, weights + n + 1);
    free(weights);
    free(sources ? to : in);
    *out = sources ? in : to;
    return sources ? n : others;
}
