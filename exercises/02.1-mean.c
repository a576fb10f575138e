//: kind complete
//: title The mean
//: instead The mean => The largest ; the mean of all => the largest of all ; ncclAvg adds up and divides by the number of ranks => ncclMax takes the largest ; ncclAvg divides by the number of ranks => ncclMax takes the largest ; ncclAvg => ncclMax ; expected[i] += check_data(r, i) => expected[i] = fmax(expected[i], check_data(r, i)) ; expected[i] /= check_nranks => expected[i] *= 1
//: trains ncclAllReduce, and which reduction
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=1
//: only ncclAllReduce
//: starter element 0 of mean is
//: wrong sum s/ncclAvg/ncclSum/: This is the sum.
//: wrong in-place s/mine, mean, count/(void *)mine, (void *)mine, count/: element 0 of mean is
//: wrong float s/ncclFloat64/ncclFloat32/: How large is an element
//: wrong bytes s/mean, count,/mean, count * sizeof(double),/: NCCL CHECK: memory
//: wrong default-stream s/comm, stream\)/comm, 0)/: NCCL CHECK: race: two streams … ncclAllReduce(
//: learned An all-reduce has no root: all give, all get; ncclAvg divides by the number of ranks.
//: why Every rank makes the same call, with a buffer that it gives and another that it gets.
//: hint The lesson's call adds up. Which other reductions does it name?
//: hint ncclAvg adds up and divides by the number of ranks.
//: hint ncclAllReduce(mine, mean, count, ncclFloat64, …, comm, stream): `mine` is read, `mean` is written.
//:   0 instead of `stream` would be the default stream.
//: file

/*
 * Each rank has `count` doubles in `mine`. With one NCCL call on `stream`, give every
 * rank the mean of all ranks for each element, in `mean`. `mine` keeps its values. Both
 * buffers are in the GPU's memory.
 */
#include "lesson.h"

void mean_of_all(const double *mine, double *mean, size_t count, ncclComm_t comm,
                 cudaStream_t stream) {
    //: starter
    // Your call.
    //: solution
    CHECK_NCCL(ncclAllReduce(mine, mean, count, ncclFloat64, ncclAvg, comm, stream));
    //: end
}
//: check
#include <math.h>

void mean_of_all(const double *mine, double *mean, size_t count, ncclComm_t comm,
                 cudaStream_t stream);

void check(void) {
    const size_t counts[] = {5, 1, 1003};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(double);
        check_case("%zu elements", count);
        double *mine = check_host(bytes), *expected = check_host(bytes);
        double *given = check_device(bytes), *mean = check_device(bytes);
        for (size_t i = 0; i < count; i++) {
            // The sum of whole numbers is exact, and then divided once.
            mine[i] = check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += check_data(r, i);
            expected[i] /= check_nranks;
        }
        check_put(given, mine, bytes);
        check_put(mean, memset(check_host(bytes), 0, bytes), bytes);
        mean_of_all(given, mean, count, check_comm, check_stream);
        double *got = check_host(bytes), *sum = check_host(bytes);
        for (size_t i = 0; i < count; i++)
            sum[i] = expected[i] * check_nranks;
        check_get(got, mean, bytes);
        for (size_t i = 0; i < count; i++) // equal but for the last bits
            got[i] = fabs(got[i] - sum[i]) < 1e-9        ? sum[i]
                     : fabs(got[i] - expected[i]) < 1e-9 ? expected[i]
                                                         : got[i];
        check_mistake("This is the sum.", sum);
        bool half = count > 2 && got[0] != 0;
        for (size_t i = count / 2 + 1; i < count; i++)
            half = half && got[i] == 0;
        if (half)
            check_mistake("The second half is as it was. How large is an element?", got);
        check_elements("mean", got, expected, count, ncclFloat64);
        check_buffer("mine", given, mine, count, ncclFloat64);
    }
}
