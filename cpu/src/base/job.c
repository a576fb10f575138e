/*
 * job.c has the processes that MPI connects: who is who, and on which host.
 */
#include "base/job.h"

#include "base/hosts.h"

int job_rank, job_size = 1;

static int *first_on_host; // of each process's host, the first process
static uint64_t number;
static uint64_t *processes; // of each, its base_process()

uint64_t job_number(void) {
    if (number == 0)
        number = base_random();
    return number;
}

int job_open(MPI_Comm all) {
    MPI_Comm here;
    uint64_t mine = base_process();
    job_number();
    PMPI_Comm_rank(all, &job_rank);
    PMPI_Comm_size(all, &job_size);
    int first = job_rank;
    first_on_host = base_grow(first_on_host, (size_t)job_size * sizeof *first_on_host);
    processes = base_grow(processes, (size_t)job_size * sizeof *processes);
    hosts_split(all, 0, MPI_INFO_NULL, &here);
    int error = PMPI_Bcast(&first, 1, MPI_INT, 0, here);
    PMPI_Comm_free(&here);
    if (error == MPI_SUCCESS)
        error = PMPI_Bcast(&number, 1, MPI_UINT64_T, 0, all);
    if (error == MPI_SUCCESS)
        error = PMPI_Allgather(&first, 1, MPI_INT, first_on_host, 1, MPI_INT, all);
    if (error == MPI_SUCCESS)
        error = PMPI_Allgather(&mine, 1, MPI_UINT64_T, processes, 1, MPI_UINT64_T, all);
    return error;
}

int job_find(uint64_t process) {
    if (process == base_process())
        return job_rank;
    for (int rank = 0; processes && rank < job_size; rank++)
        if (processes[rank] == process)
            return rank;
    return -1;
}

bool job_share_host(int a, int b) {
    return !first_on_host || first_on_host[a] == first_on_host[b];
}

bool job_same_host(int rank) {
    return job_share_host(rank, job_rank);
}
