//: kind repair
//: title The norm first, or last
//: trains the order of calls over two communicators
//: setup comm
//: ranks 2 3 | 4 7 8
//: starter NCCL CHECK: deadlock
//: learned All ranks make the calls of all their communicators in the same order.
//: why Every rank makes the call for the norm first, also the one that reports it.
//: hint Read the report: on which communicator does each rank wait?
//: hint Rank 0 makes the two calls in a different order from the others.
//: hint Make both calls in one order, outside the if. Rank 0 can report the norm after both.
//: wrong all-report s/rank == 0/rank >= 0/: rank 1: it reports the norm, too; only rank 0 should
//: file

/*
 * "Since rank 0 reports the norm, the job hangs now and then."
 *
 * Each step needs two sums over all ranks: of the gradient (on `data`) and of one number,
 * the norm (on `norms`). Rank 0 reports the norm when it has it. Repair the step.
 */
#include "lesson.h"

void report(const float *norm, cudaStream_t stream);

void step(float *gradient, size_t count, float *norm, int rank, ncclComm_t data,
          ncclComm_t norms, cudaStream_t stream) {
    //: starter
    if (rank == 0) {
        CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
        report(norm, stream);
    }
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    if (rank != 0)
        CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
    //: solution
    CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
    if (rank == 0)
        report(norm, stream);
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    //: wrong rank-0-only: NCCL CHECK:
    if (rank == 0) {
        CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
        report(norm, stream);
    }
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    //: wrong others-report-nothing: NCCL CHECK:
    if (rank != 0)
        CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    if (rank == 0) {
        CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
        report(norm, stream);
    }
    //: wrong no-report: rank 0: it has not reported
    CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    (void)rank;
    //: wrong too-early: the report comes before the sum
    if (rank == 0)
        report(norm, stream);
    CHECK_NCCL(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, norms, stream));
    CHECK_NCCL(
        ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, data, stream));
    //: end
}
//: check
void step(float *gradient, size_t count, float *norm, int rank, ncclComm_t data,
          ncclComm_t norms, cudaStream_t stream);

static float reported;

void report(const float *norm, cudaStream_t stream) {
    CHECK_CUDA(cudaMemcpyAsync(&reported, norm, sizeof reported, cudaMemcpyDeviceToHost,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

void check(void) {
    enum { COUNT = 300 };
    ncclComm_t norms;
    CHECK_NCCL(ncclCommSplit(check_comm, 0, check_rank, &norms, NULL));
    for (int s = 0; s < 2; s++) {
        check_case("step %d", s);
        float mine[COUNT + 1], expected[COUNT + 1] = {0};
        for (size_t i = 0; i <= COUNT; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        float *gradient = check_device(sizeof mine);
        check_put(gradient, mine, sizeof mine);
        reported = -1;
        step(gradient, COUNT, gradient + COUNT, check_rank, check_comm, norms,
             check_stream);
        check_buffer("the gradient", gradient, expected, COUNT, ncclFloat32);
        check_buffer("the norm", gradient + COUNT, expected + COUNT, 1, ncclFloat32);
        if (check_rank != 0)
            check_that(reported == -1, "it reports the norm, too; only rank 0 should");
        else if (check_that(reported != -1, "it has not reported the norm"))
            check_that(reported == expected[COUNT],
                       "it has reported the norm as %g, expected %g%s", (double)reported,
                       (double)expected[COUNT],
                       reported == mine[COUNT] ? ": the report comes before the sum"
                                               : "");
    }
    CHECK_NCCL(ncclCommDestroy(norms));
}
