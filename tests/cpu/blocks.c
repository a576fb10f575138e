/*
 * What the front takes for the bytes of a message, and for the neighbours of a rank:
 * beside what MPI itself packs of random types, and what a neighbourhood collective
 * writes.
 */
#include "chance.h"
#include "tap.h"

#include "../../check/base.c"
#include "../../check/front/types.c"

enum { ELEMENTS = 20000, MIDDLE = ELEMENTS / 2 };

static int numbers[ELEMENTS]; // each is its own index
static char told[ELEMENTS];   // how often types_blocks has told of it
static size_t ntold, nbytes;  // blocks; bytes
static bool outside;          // of the array, or not a whole element

static void tell(void *self, const char *start, size_t bytes) {
    ptrdiff_t from = start - (const char *)numbers;
    (void)self;
    ntold++;
    nbytes += bytes;
    if (from < 0 || from % (ptrdiff_t)sizeof(int) || bytes % sizeof(int) ||
        from + (ptrdiff_t)bytes > (ptrdiff_t)sizeof numbers) {
        outside = true;
        return;
    }
    for (size_t i = 0; i < bytes / sizeof(int); i++)
        told[(size_t)from / sizeof(int) + i]++;
}

static void free_type(MPI_Datatype *type) {
    if (*type != MPI_INT)
        MPI_Type_free(type);
}

/* A type of types, so many deep; no element of it overlaps another. */
static MPI_Datatype any_type(int depth) {
    if (depth == 0)
        return MPI_INT;
    MPI_Datatype old = any_type(depth - 1), made;
    MPI_Aint low, extent, at[3];
    MPI_Type_get_extent(old, &low, &extent);
    int n = 1 + below(3), long_ = 1 + below(2), gap = below(3);
    int lengths[3], places[3], sizes[3], parts[3], starts[3], next = 0;
    for (int i = 0; i < 3; i++) {
        lengths[i] = 1 + below(2);
        places[i] = next;
        at[i] = next * extent;
        next += (lengths[i] > long_ ? lengths[i] : long_) + below(3);
        parts[i] = 1 + below(2);
        starts[i] = below(2);
        sizes[i] = starts[i] + parts[i] + below(2);
    }
    MPI_Datatype same[3] = {old, old, old};
    switch (below(10)) {
    case 0: MPI_Type_contiguous(n, old, &made); break;
    case 1: MPI_Type_vector(n, long_, long_ + gap, old, &made); break;
    case 2: MPI_Type_create_hvector(n, long_, (long_ + gap) * extent, old, &made); break;
    case 3: MPI_Type_indexed(n, lengths, places, old, &made); break;
    case 4: MPI_Type_create_hindexed(n, lengths, at, old, &made); break;
    case 5: MPI_Type_create_indexed_block(n, long_, places, old, &made); break;
    case 6: MPI_Type_create_hindexed_block(n, long_, at, old, &made); break;
    case 7: MPI_Type_create_struct(n, lengths, at, same, &made); break;
    case 8:
        MPI_Type_create_subarray(n, sizes, parts, starts,
                                 below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &made);
        break;
    default:
        MPI_Type_create_resized(old, low, extent + (MPI_Aint)sizeof(int) * below(3),
                                &made);
    }
    free_type(&old);
    return made;
}

static void one_type(int seed) {
    static int packed[ELEMENTS];
    static char wanted[ELEMENTS];
    begin_chance(seed);
    MPI_Datatype type = any_type(below(4)), copy;
    int count = 1 + below(3), size, position = 0;
    MPI_Type_dup(type, &copy);
    MPI_Type_commit(&copy);
    MPI_Type_size(copy, &size);
    memset(told, 0, sizeof told);
    memset(wanted, 0, sizeof wanted);
    ntold = nbytes = 0;
    outside = false;
    MPI_Pack(numbers + MIDDLE, count, copy, packed, sizeof packed, &position,
             MPI_COMM_SELF);
    for (int i = 0; i < position / (int)sizeof(int); i++)
        wanted[packed[i]] = 1;
    bool known = types_blocks((const char *)(numbers + MIDDLE), count, copy, tell, NULL);
    expect(known && !outside, "type %d: known %d, outside %d", seed, known, outside);
    expect(ntold > 0 && ntold <= AT_MOST, "type %d: %zu blocks", seed, ntold);
    // All of it, or some of more than 64 blocks.
    bool all = nbytes == (size_t)count * (size_t)size;
    expect(all || ntold > AT_MOST / 2, "type %d: %zu of %d bytes in %zu blocks", seed,
           nbytes, count * size, ntold);
    for (int i = 0; i < ELEMENTS; i++)
        if (told[i] > wanted[i] || (all && told[i] != wanted[i])) {
            expect(false, "type %d: element %d told %d times", seed, i - MIDDLE, told[i]);
            break;
        }
    MPI_Type_free(&copy);
    free_type(&type);
}

/* Which blocks a collective writes, and which ranks stand for them. */
static void neighbours(const char *name, MPI_Comm comm) {
    enum { MOST = 64 };
    int written[MOST], mine[MOST], *sources, *targets;
    int n = types_neighbours(comm, true, &sources),
        m = types_neighbours(comm, false, &targets);
    for (int i = 0; i < MOST; i++) {
        written[i] = -1;
        mine[i] = tap_rank;
    }
    MPI_Neighbor_alltoall(mine, 1, MPI_INT, written, 1, MPI_INT, comm);
    for (int i = 0; i < MOST; i++) {
        int from = i < n && sources[i] != MPI_PROC_NULL ? sources[i] : -1;
        expect(written[i] == from, "%s: block %d has %d, not %d", name, i, written[i],
               from);
    }
    for (int i = 0; i < m; i++)
        expect(targets[i] == MPI_PROC_NULL || (targets[i] >= 0 && targets[i] < tap_ranks),
               "%s: sends to %d", name, targets[i]);
    free(sources);
    free(targets);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < ELEMENTS; i++)
        numbers[i] = i;
    for (int seed = 0; seed < 3000; seed++)
        one_type(seed);
    point("3000 random types: the bytes that MPI packs");

    MPI_Comm comm;
    int rings[2] = {tap_ranks, 1}, round[2] = {1, 0}, open[2] = {0, 0};
    MPI_Cart_create(MPI_COMM_WORLD, 2, rings, round, 0, &comm);
    neighbours("a ring", comm);
    MPI_Cart_create(MPI_COMM_WORLD, 2, rings, open, 0, &comm);
    neighbours("a line", comm);
    int *index = calloc((size_t)tap_ranks, sizeof *index),
        *edges = calloc(2 * (size_t)tap_ranks, sizeof *edges), n = 0;
    for (int r = 0; r < tap_ranks; r++) { // a star
        if (r == 0)
            for (int other = 1; other < tap_ranks; other++)
                edges[n++] = other;
        else
            edges[n++] = 0;
        index[r] = n;
    }
    MPI_Graph_create(MPI_COMM_WORLD, tap_ranks, index, edges, 0, &comm);
    neighbours("a graph", comm);
    int next = (tap_rank + 1) % tap_ranks, last = (tap_rank + tap_ranks - 1) % tap_ranks;
    int weight = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, &weight, 1, &next, &weight,
                                   MPI_INFO_NULL, 0, &comm);
    neighbours("a ring of one direction", comm);
    int *none, left = types_neighbours(MPI_COMM_WORLD, true, &none);
    expect(left == 0 && !none, "MPI_COMM_WORLD has %d neighbours", left);
    free(index);
    free(edges);
    point("the neighbours of communicators with a topology");
    return finish();
}
