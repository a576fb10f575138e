//: kind repair
//: title One rank skips the step
//: trains a step that depends on what happens at run time
//: ranks 2 3 | 1 4 7 8
//: starter NCCL CHECK: deadlock
//: wrong own-flag-only s/CHECK_NCCL\(\s*ncclAllReduce\(flag[^;]*;//: NCCL CHECK: deadlock
//: wrong all-must-overflow s/ncclMax/ncclMin/: expected
//: wrong told-by-rank-0 s/CHECK_NCCL\(\s*ncclAllReduce\(flag[^;]*;/CHECK_NCCL(ncclBroadcast(flag, flag, 1, ncclInt32, 0, comm, stream));/: expected
//: learned If a condition decides about a collective, the ranks agree on it first, with a call that all of them make.
//: why The maximum of the flags is the same on all ranks, so all skip the step or none does.
//: hint When one rank returns, what do the other ranks' all-reduces wait for?
//: hint All ranks must decide alike: skip if any of them has an overflow. Which small all-reduce tells them?
//: hint Copy `overflow` to `flag`, ncclAllReduce of one ncclInt32 with ncclMax, copy it back, wait; then decide.
//: file

/*
 * In training with 16-bit floats a gradient can overflow. Then the step is to be skipped:
 * on all ranks, even if only one of them has an overflow. Return true if the step was
 * made: `gradient` is then the sum over all ranks. Return false on all ranks, and leave
 * the gradient as it is, if it is skipped.
 *
 * "Ran for hours, then stood still." Repair it. `overflow` is 1 or 0; `flag` is an int
 * in the GPU's memory that you may use. Return when the work on `stream` is done, or
 * leave it queued there, as you like.
 */
#include "lesson.h"

bool step(float *gradient, size_t count, int overflow, int *flag, ncclComm_t comm,
          cudaStream_t stream) {
    //: starter
    //: solution
    CHECK_CUDA(cudaMemcpyAsync(flag, &overflow, sizeof overflow, cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclAllReduce(flag, flag, 1, ncclInt32, ncclMax, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(&overflow, flag, sizeof overflow, cudaMemcpyDeviceToHost,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: end
    if (overflow)
        return false;
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, stream));
    return true;
}
//: check
bool step(float *gradient, size_t count, int overflow, int *flag, ncclComm_t comm,
          cudaStream_t stream);

enum { STEPS = 6 };

void check(void) {
    // Which rank has an overflow in each step: none, the last, all, rank 0, none, rank 1.
    const int who[STEPS] = {-1, check_nranks - 1, -2, 0, -1, 1};
    for (int s = 0; s < STEPS; s++) {
        const size_t count = 100 + (size_t)s, bytes = count * sizeof(float);
        const bool mine = who[s] == -2 || who[s] == check_rank;
        const bool made = who[s] == -1 || who[s] >= check_nranks;
        check_case("step %d, %s", s,
                   who[s] == -2 ? "all ranks overflow"
                   : made       ? "no rank overflows"
                                : "one rank overflows");
        float *gradient = check_device(bytes);
        int *flag = check_device(sizeof *flag);
        float *host = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)check_data(check_rank, i);
            expected[i] = made ? 0 : host[i];
            for (int r = 0; made && r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        check_put(gradient, host, bytes);
        const bool said = step(gradient, count, mine, flag, check_comm, check_stream);
        check_that(said == made, "it returns %s, expected %s", said ? "true" : "false",
                   made ? "true" : "false");
        check_buffer("gradient", gradient, expected, count, ncclFloat32);
    }
}
