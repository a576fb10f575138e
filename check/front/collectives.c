/*
 * collectives.c: MPI's collective calls, which all ranks of a communicator make alike.
 *
 * Each communicator that MPI_COMM_WORLD was split or copied into has a number that is the
 * same on all its ranks: of the call that made it, and of its ranks. It is kept with the
 * communicator (MPI 4.1, 7.7.2 "Communicators": attributes).
 */
#include "../base.h"
#include "mpi_front.h"

#include <stdlib.h>

enum { COMPARED = 8192 }; // calls of a communicator, its first

struct communicator {
    uint64_t id, calls;
    int rank, nranks;
    bool world;
    struct judge_at at; // the call that a thread is in; call NULL: none
    pthread_t thread;
};
static int key = MPI_KEYVAL_INVALID;

/* What this thread calls now; of NULL, if nobody compares that. */
static __thread struct communicator *mine;
static __thread struct judge_mpi_collective call;

static int goes(MPI_Comm comm, int keyval, void *value, void *extra) {
    struct communicator *gone = value;
    (void)comm;
    (void)keyval;
    (void)extra;
    if (front_checks) {
        judge_mpi_comm_gone(front_in_as(0), gone->id, gone->rank, gone->nranks);
        front_leave();
    }
    if (mine == gone)
        mine = NULL;
    free(gone);
    return MPI_SUCCESS;
}

/* One rank has nobody to agree with. */
static void keep(MPI_Comm comm, uint64_t id, bool world) {
    int nranks;
    PMPI_Comm_size(comm, &nranks);
    if (nranks == 1)
        return;
    struct communicator *new = must_alloc(sizeof *new);
    *new = (struct communicator){.id = id, .nranks = nranks, .world = world};
    PMPI_Comm_rank(comm, &new->rank);
    PMPI_Comm_set_attr(comm, key, new);
}

void collectives_begin(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, goes, &key, NULL);
    keep(MPI_COMM_WORLD, UINT64_C(0xcbf29ce484222325), true);
}

void mpi_collective(const struct judge_at *at, MPI_Comm comm, int root, int reduction,
                    struct mpi_data data) {
    void *value;
    int found = 0;
    mine = NULL;
    if (!front_checks || key == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL)
        return;
    PMPI_Comm_get_attr(comm, key, &value, &found);
    if (!found)
        return;
    mine = value;
    struct judge *j = front_in();
    call = (struct judge_mpi_collective){.comm = mine->id,
                                         .seq = ++mine->calls,
                                         .rank = mine->rank,
                                         .nranks = mine->nranks,
                                         .world = mine->world,
                                         .root = root,
                                         .reduction = reduction,
                                         .bytes = data.bytes,
                                         .type = data.type,
                                         .at = *at};
    if (mine->at.call && !pthread_equal(mine->thread, pthread_self()))
        judge_mpi_collective_twice(j, mine->at, *at);
    mine->at = *at;
    mine->thread = pthread_self();
    if (call.seq <= COMPARED)
        judge_mpi_collective(j, &call);
    front_leave();
}

void mpi_parts(int root, bool scatters, const int *counts, MPI_Datatype type, int count,
               MPI_Datatype own) {
    enum { MOST = 64 }; // ranks
    const int lists = root < 0 ? 0 : root;
    if (!mine || call.seq > COMPARED || call.nranks > MOST || lists >= call.nranks)
        return;
    const bool is_list = call.rank == lists, in_place = count < 0;
    const MPI_Datatype of = is_list || in_place ? type : own;
    if (of == MPI_DATATYPE_NULL || ((is_list || in_place) && !counts))
        return;
    int size;
    PMPI_Type_size(of, &size);
    struct judge *j = front_in();
    for (int r = 0; r < call.nranks; r++) {
        const int n = is_list || in_place ? counts[r] : count;
        if ((call.rank == r) == is_list || n < 0)
            continue; // to itself; or of another rank than this one
        judge_mpi_part(j, &call, scatters == is_list, is_list ? r : lists,
                       (uint64_t)n * (uint64_t)size);
    }
    front_leave();
}

void mpi_collective_was(int result) {
    if (!mine)
        return;
    struct judge *j = front_in();
    bool failed = result != MPI_SUCCESS;
    mine->at.call = NULL;
    if (failed) {
        if (call.seq <= COMPARED)
            judge_mpi_collective_failed(j, &call);
        if (mine->calls == call.seq)
            mine->calls--;
    }
    front_leave();
    if (failed)
        mine = NULL;
}

void mpi_communicator(MPI_Comm made) {
    MPI_Group all, theirs;
    int n;
    if (!mine || made == MPI_COMM_NULL)
        return;
    uint64_t id = mixed(mixed(mine->id, call.seq), 0);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_group(made, &theirs);
    PMPI_Group_size(theirs, &n);
    for (int rank = 0, world; rank < n; rank++) {
        PMPI_Group_translate_ranks(theirs, 1, &rank, all, &world);
        id = mixed(id, (uint64_t)world);
    }
    PMPI_Group_free(&all);
    PMPI_Group_free(&theirs);
    keep(made, id, false);
}

/* --- Arguments -------------------------------------------------------------------- */

/* In JUDGE_MPI_TYPES; -1: it is none of them, a type of the program's own, say. */
#define TYPE(type) type
static int type_of(MPI_Datatype type) {
    const MPI_Datatype types[] = {JUDGE_MPI_TYPES(TYPE)};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (type == types[i])
            return (int)i;
    return -1;
}

struct mpi_data mpi_data(long long count, MPI_Datatype type) {
    int size = 0;
    if (type == MPI_DATATYPE_NULL || count < 0)
        return MPI_NOT_ALIKE;
    PMPI_Type_size(type, &size);
    return (struct mpi_data){(uint64_t)count * (uint64_t)size,
                             count > 0 ? type_of(type) : -1};
}

int mpi_reduction(MPI_Op op) {
    const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
                          MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (op == ops[i])
            return (int)i;
    return -1;
}
