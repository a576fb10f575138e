//: kind fast
//: title Flags and norms
//: trains one call instead of many
//: ranks 4 2 | 3 7 8
//: clock h200
//: only ncclAllReduce
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter it takes … times
//: learned Small values that lie side by side need only one call: a launch costs more than its bytes.
//: why The values lie one after the other, so one all-reduce with nvalues times the count sums them all.
//: hint How many launches does the loop make, and how many would be enough?
//: hint The values follow one another in memory, from values[0] on.
//: hint CHECK_NCCL(ncclAllReduce(values, values, nvalues * count, …)); once.
//: file

/*
 * A training step sums `nvalues` small values over all ranks: norms, losses, flags. Each
 * has `count` floats; they follow one another in `values`, in the GPU's memory.
 *
 * Make it fast: at most a sixth of what it takes now. Don't wait: the caller does.
 */
#include "lesson.h"

void sum_values(float *values, size_t nvalues, size_t count, ncclComm_t comm,
                cudaStream_t stream) {
    //: starter
    for (size_t v = 0; v < nvalues; v++)
        CHECK_NCCL(ncclAllReduce(values + v * count, values + v * count, count,
                                 ncclFloat32, ncclSum, comm, stream));
    //: solution
    CHECK_NCCL(ncclAllReduce(values, values, nvalues * count, ncclFloat32, ncclSum, comm,
                             stream));
    //: wrong first-only: of the values is
    CHECK_NCCL(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, comm, stream));
    //: wrong one-short: of the values is
    CHECK_NCCL(ncclAllReduce(values, values, nvalues * count - 1, ncclFloat32, ncclSum,
                             comm, stream));
    //: wrong in-bytes: NCCL CHECK: memory
    CHECK_NCCL(ncclAllReduce(values, values, nvalues * count * sizeof(float), ncclFloat32,
                             ncclSum, comm, stream));
    //: wrong with-waits: it takes … times
    for (size_t v = 0; v < nvalues; v++) {
        CHECK_NCCL(ncclAllReduce(values + v * count, values + v * count, count,
                                 ncclFloat32, ncclSum, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: end
}
//: check
void sum_values(float *values, size_t nvalues, size_t count, ncclComm_t comm,
                cudaStream_t stream);

enum { VALUES = 16, COUNT = 3 };

void check(void) {
    float mine[VALUES * COUNT], expected[VALUES * COUNT] = {0};
    check_case("%d values of %d elements", VALUES, COUNT);
    for (size_t i = 0; i < VALUES * COUNT; i++) {
        mine[i] = (float)check_data(check_rank, i);
        for (int r = 0; r < check_nranks; r++)
            expected[i] += (float)check_data(r, i);
    }
    float *values = check_device(sizeof mine), *other = check_device(sizeof mine);
    check_put(other, mine, sizeof mine);
    double before = 0, now = 0;
    while (check_measuring(&before))
        for (size_t v = 0; v < VALUES; v++)
            CHECK_NCCL(ncclAllReduce(other + v * COUNT, other + v * COUNT, COUNT,
                                     ncclFloat32, ncclSum, check_comm, check_stream));
    check_put(values, mine, sizeof mine);
    if (check_modelled()) {
        while (check_measuring(&now))
            sum_values(values, VALUES, COUNT, check_comm, check_stream);
    } else {
        while (check_measuring(&now))
            sum_values(other, VALUES, COUNT, check_comm, check_stream);
        sum_values(values, VALUES, COUNT, check_comm, check_stream);
    }
    check_buffer("the values", values, expected, VALUES * COUNT, ncclFloat32);
    check_time(now, 1.0 / 6, before, "before");
}
