// 06.1 Too good to be true (repair)
// make exercise N=06.1

/*
 * "We measured an all-reduce of 16 MiB: 7000 GB/s! And if rank 0 reads a file first, the
 * same all-reduce takes a hundred times as long on the other ranks."
 *
 * Repair it: it returns how many seconds one all-reduce takes, if `repeat` of them are
 * queued one after another. All ranks call this function, but some come later than
 * others.
 */
#include "lesson.h"

double seconds_of_one(float *buf, size_t count, int repeat, ncclComm_t comm,
                      cudaStream_t stream) {
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    return (MPI_Wtime() - start) / repeat;
}
