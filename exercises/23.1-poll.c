//: kind complete
//: title Ask, until it is over
//: trains polling with a deadline
//: setup comm
//: ranks 2 3 | 1 4 7 8
//: starter it says that the work is done, and it is not
//: learned A rank that must survive a lost one never waits without a deadline: it asks the stream, NCCL and the clock.
//: why The loop ends in one of three ways: the stream is done, NCCL has an error, or the time is over.
//: hint cudaStreamQuery returns cudaErrorNotReady as long as something is queued.
//: hint In the loop ask two more things: ncclCommGetAsyncError, and MPI_Wtime() against the end.
//: hint while (cudaStreamQuery(stream) == cudaErrorNotReady) { ask NCCL; if it has an error, or it is too late, return false; } return true;
//: file

/*
 * Wait until all work on `stream` is done, but never longer than `seconds`. Return true
 * if it is done, false if NCCL has seen an error on `comm` or the time is over.
 */
#include "lesson.h"

bool done_in_time(cudaStream_t stream, ncclComm_t comm, double seconds) {
    //: starter
    (void)stream, (void)comm, (void)seconds;
    return true;
    //: solution
    const double end = MPI_Wtime() + seconds;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        ncclResult_t state;
        CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
        if (state != ncclSuccess || MPI_Wtime() > end)
            return false;
    }
    return true;
    //: wrong synchronize: it took … s, and the deadline was
    (void)comm, (void)seconds;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return true;
    //: wrong twice-as-long: it took … s, and the deadline was 0.7 s
    const double end = MPI_Wtime() + seconds;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        ncclResult_t state;
        CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
        if (state != ncclSuccess || MPI_Wtime() - end > seconds)
            return false;
    }
    return true;
    //: wrong ask-once: it says that the work is not done
    ncclResult_t state;
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    (void)seconds;
    return cudaStreamQuery(stream) == cudaSuccess && state == ncclSuccess;
    //: wrong other-way-round: it says that the work is
    const double end = MPI_Wtime() + seconds;
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (MPI_Wtime() > end)
            return true;
    (void)comm;
    return false;
    //: wrong never-asks-nccl: NCCL has seen an error on comm, and it says that the work is done
    const double end = MPI_Wtime() + seconds;
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (MPI_Wtime() > end)
            return false;
    (void)comm;
    return true;
    //: wrong asks-nccl-too-late: it took … s to say that NCCL has seen an error on comm
    const double end = MPI_Wtime() + seconds;
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (MPI_Wtime() > end)
            return false;
    ncclResult_t state;
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    return state == ncclSuccess;
    //: end
}
//: check
#include <time.h>

int nanosleep(const struct timespec *request, struct timespec *rest);
bool done_in_time(cudaStream_t stream, ncclComm_t comm, double seconds);

static void CUDART_CB sleep_long(void *seconds) {
    const double s = *(double *)seconds;
    nanosleep(&(struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

/* A communicator that cannot be made, because nobody has made this unique id. */
static ncclComm_t failed_comm(void) {
    const ncclUniqueId nobodys = {{(char)(check_rank + 1)}};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm;
    ncclResult_t state = ncclCommInitRankConfig(&comm, 1, nobodys, 0, &config);
    while (state == ncclInProgress)
        CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    return comm;
}

void check(void) {
    static double little = 0.15, much = 1.6;
    check_case("the work takes 0.15 s, the deadline is 10 s");
    CHECK_CUDA(cudaLaunchHostFunc(check_stream, sleep_long, &little));
    check_that(done_in_time(check_stream, check_comm, 10) ||
                   cudaStreamQuery(check_stream) == cudaSuccess + 1000,
               "it says that the work is not done");
    check_that(cudaStreamQuery(check_stream) == cudaSuccess,
               "it says that the work is done, and it is not");
    check_case("the work takes 1.6 s, the deadline is 0.7 s");
    CHECK_CUDA(cudaLaunchHostFunc(check_stream, sleep_long, &much));
    const double began = MPI_Wtime();
    const bool done = done_in_time(check_stream, check_comm, 0.7);
    const double took = MPI_Wtime() - began;
    check_that(took < 1.35, "it took %.1f s, and the deadline was 0.7 s", took);
    check_that(!done, "it says that the work is done, and it is not");
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    check_case("the work takes 1.6 s, the deadline is 10 s, and NCCL has an error");
    const ncclComm_t failed = failed_comm();
    CHECK_CUDA(cudaLaunchHostFunc(check_stream, sleep_long, &much));
    const double asked = MPI_Wtime();
    check_that(!done_in_time(check_stream, failed, 10),
               "NCCL has seen an error on comm, and it says that the work is done");
    const double waited = MPI_Wtime() - asked;
    check_that(waited < 1, "it took %.1f s to say that NCCL has seen an error on comm",
               waited);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    CHECK_NCCL(ncclCommAbort(failed));
}
