// 00.3 Two ranks on one GPU (repair)
// make exercise N=00.3

/*
 * "On one node it works. On two nodes with two GPUs each our cluster deals the ranks out
 * in turn: ranks 0 and 2 are on the first node, 1 and 3 on the second. NCCL says: invalid
 * usage."
 *
 * Repair it: the ranks of a node must take different GPUs, however they are placed. MPI
 * has been started. You may ask it.
 */
#include "lesson.h"

/* The GPU that this rank takes: 0 to ndevices - 1. */
int choose_device(int rank, int ndevices) {
    return rank % ndevices;
}
