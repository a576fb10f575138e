/*
 * place.h: which ranks share a node, and which of them share the work.
 */
#ifndef PLACE_H
#define PLACE_H

#include "lesson.h"

/* Where this rank is. */
struct place {
    int rank, nranks;  // among all
    int node, nnodes;  // its node's number, and how many nodes there are
    int local, nlocal; // among the ranks of its node
    int team;          // ranks of a node that share the work
};

/* Asks MPI which ranks share a node. If all nodes have the same number of ranks, a team
 * is a whole node. Otherwise the nodes fall into teams of equal size: 4 and 2 ranks make
 * three teams of 2, and 4 and 3 make seven of 1. */
static struct place find_place(void) {
    struct place p;
    MPI_Comm here;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &p.rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &p.nranks));
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, p.rank,
                                  MPI_INFO_NULL, &here));
    CHECK_MPI(MPI_Comm_rank(here, &p.local));
    CHECK_MPI(MPI_Comm_size(here, &p.nlocal));
    // Each node is counted once, by its first rank, which tells the others its number.
    const int first = p.local == 0;
    CHECK_MPI(MPI_Allreduce(&first, &p.nnodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Scan(&first, &p.node, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    p.node--;
    CHECK_MPI(MPI_Bcast(&p.node, 1, MPI_INT, 0, here));
    CHECK_MPI(MPI_Comm_free(&here));
    // The largest team that divides every node.
    for (int team = 1, fits; team <= p.nranks; team++) {
        const int mine = p.nlocal % team == 0;
        CHECK_MPI(MPI_Allreduce(&mine, &fits, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        p.team = fits ? team : p.team;
    }
    return p;
}

#endif
