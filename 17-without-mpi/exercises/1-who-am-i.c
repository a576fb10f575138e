// 17.1 Who am I? (complete)
// make exercise N=17.1

/*
 * Find out this process's rank and the number of ranks from the environment. Sets of
 * variables, the first that is complete counts:
 *
 *     RANK, WORLD_SIZE
 *     OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *     SLURM_PROCID, SLURM_NTASKS
 *
 * If there is none, the process is alone: rank 0 of 1.
 */
#include "lesson.h"

void who_am_i(int *rank, int *size) {
    *rank = -1;
    *size = -1;
}
