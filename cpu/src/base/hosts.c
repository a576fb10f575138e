/*
 * hosts.c has the hosts, and several of them on one machine.
 *
 * CPU_HOSTS=2 divides the ranks of a machine among so many pretended hosts: in blocks,
 * the first ones to the first host; with CPU_HOSTS=2:cyclic in turn. Each has a name and
 * devices of its own; MPI_Get_processor_name and MPI_Comm_split_type tell the program.
 */
#define _GNU_SOURCE
#include "base/hosts.h"

#include <unistd.h>

bool hosts_told;
static int hosts_here = 1, mine;
static char name[64];

const char *hosts_name(void) {
    if (!name[0]) {
        gethostname(name, sizeof name - 1);
        name[strcspn(name, ".")] = '\0';
    }
    return name;
}

void hosts_find(void) {
    MPI_Comm machine;
    int rank, nranks;
    char asked[32];
    const char *mine_asks = getenv("CPU_HOSTS");
    hosts_name();
    snprintf(asked, sizeof asked, "%s", mine_asks ? mine_asks : "");
    PMPI_Bcast(asked, sizeof asked, MPI_CHAR, 0, MPI_COMM_WORLD); // rank 0's word counts
    hosts_told = atoi(asked) > 0;
    if (atoi(asked) < 2)
        return;
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                         &machine);
    PMPI_Comm_rank(machine, &rank);
    PMPI_Comm_size(machine, &nranks);
    PMPI_Comm_free(&machine);
    hosts_here = atoi(asked) < nranks ? atoi(asked) : nranks;
    if (hosts_here == 1)
        return;
    bool in_turn = strcmp(asked + strspn(asked, "0123456789"), ":cyclic") == 0;
    mine = in_turn ? rank % hosts_here : (int)((long)rank * hosts_here / nranks);
    size_t length = strlen(name), room = 24;
    length = length < room ? length : room;
    snprintf(name + length, sizeof name - length, "-%d", mine);
}

int hosts_split(MPI_Comm comm, int key, MPI_Info info, MPI_Comm *out) {
    int result = PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, info, out);
    if (result != MPI_SUCCESS || hosts_here == 1 || *out == MPI_COMM_NULL)
        return result;
    MPI_Comm machine = *out;
    result = PMPI_Comm_split(machine, mine, key, out);
    PMPI_Comm_free(&machine);
    return result;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) {
    return type == MPI_COMM_TYPE_SHARED
               ? hosts_split(comm, key, info, out)
               : PMPI_Comm_split_type(comm, type, key, info, out);
}

int MPI_Get_processor_name(char *out, int *length) {
    if (hosts_here == 1)
        return PMPI_Get_processor_name(out, length);
    *length = snprintf(out, MPI_MAX_PROCESSOR_NAME, "%s", name);
    return MPI_SUCCESS;
}
