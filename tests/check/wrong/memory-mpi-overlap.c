// The root's own part lies in the buffer of all already, as NCCL wants it in place. MPI
// wants to be told: MPI_IN_PLACE. Most MPIs gather all the same.
//
// expect: NCCL CHECK: memory: what MPI_Gather sends and what it receives overlap
// expect: rank 0 on @host: MPI_Gather at @gather
// expect: Hint: MPI_IN_PLACE in the place of sendbuf
// expect: NCCL CHECK: memory: what MPI_Sendrecv sends and what it receives overlap
// expect: rank 0 on @host: MPI_Sendrecv at @exchange
// expect: Hint: MPI_Sendrecv_replace has one buffer for both
// exit: 0
#include "../check.h"

enum { MINE = 100 };

int main(void) {
    start();
    int *all = calloc((size_t)nranks * MINE, sizeof(int)), *mine = all + rank * MINE;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Status status;
    const void *mine_is = mine;
#ifdef FIXED
    mine_is = rank == 0 ? MPI_IN_PLACE : mine_is;
#endif
    MPI_Gather(mine_is, MINE, MPI_INT, all, MINE, MPI_INT, 0, world); // @gather
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    int *into = rank == 0 ? all : calloc(MINE, sizeof(int));
#ifdef FIXED
    into = rank == 0 ? all + MINE : into;
#endif
    // @exchange
    MPI_Sendrecv(all, MINE, MPI_INT, to, 0, into, MINE, MPI_INT, from, 0, world, &status);
    // Parts of one array that do not overlap, holes that do, and one buffer for both.
    MPI_Sendrecv(all, MINE / 2, MPI_INT, to, 0, all + MINE / 2, MINE / 2, MPI_INT, from,
                 0, world, &status);
    MPI_Datatype every_other;
    MPI_Type_vector(MINE / 2, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Sendrecv(all, 1, every_other, to, 0, all + 1, 1, every_other, from, 0, world,
                 &status);
    MPI_Type_free(&every_other);
    MPI_Sendrecv_replace(all, MINE, MPI_INT, to, 0, from, 0, world, &status);
    if (rank > 0)
        free(into);
    free(all);
    use_comm(comm);
    finish();
    return 0;
}
