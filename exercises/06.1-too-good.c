//: kind repair
//: title Too good to be true
//: trains how to measure a collective
//: clock h200
//: ranks 2 4 | 1 3 7 8
//: starter seconds, expected
//: learned Start together, wait before you stop: otherwise the clock shows the calls, or the latest rank.
//: why The barrier lets all ranks begin together, and the wait makes the clock stop when the work is done.
//: hint What has been done when ncclAllReduce returns?
//: hint And what does the first rank do while it waits for the one that reads a file? Who starts the clocks of
//:   all ranks at the same moment?
//: hint CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)) before the start, cudaStreamSynchronize(stream) before the end.
//: file

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
    //: starter
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    return (MPI_Wtime() - start) / repeat;
    //: solution
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return (MPI_Wtime() - start) / repeat;
    //: wrong only-wait: to which rank 0 comes late … seconds, expected … It includes the wait for a late rank
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return (MPI_Wtime() - start) / repeat;
    //: wrong only-barrier: seconds, expected … as long as the calls take
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    return (MPI_Wtime() - start) / repeat;
    //: wrong barrier-after-start: to which rank 0 comes late … seconds, expected
    const double start = MPI_Wtime();
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return (MPI_Wtime() - start) / repeat;
    //: wrong of-all: That is the time of all
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return MPI_Wtime() - start;
    //: wrong wait-for-each: A wait after each call
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++) {
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    return (MPI_Wtime() - start) / repeat;
    //: wrong waits-first: as long as the calls take
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = MPI_Wtime();
    for (int i = 0; i < repeat; i++)
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, comm, stream));
    return (MPI_Wtime() - start) / repeat;
    //: end
}
//: check
double seconds_of_one(float *buf, size_t count, int repeat, ncclComm_t comm,
                      cudaStream_t stream);

enum { REPEAT = 5 };

static void be_late(void *device, void *host, size_t bytes) {
    for (int i = 0; i < 20; i++)
        CHECK_CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

void check(void) {
    const size_t count = 1 << 18, bytes = count * sizeof(float);
    for (int late = -1; late <= 0; late++) {
        check_case("%d all-reduces%s", REPEAT,
                   late < 0 ? "" : ", to which rank 0 comes late");
        float *buf = check_device(bytes), *host = check_host(bytes);
        CHECK_CUDA(cudaMemset(buf, 0, bytes));
        CHECK_CUDA(cudaDeviceSynchronize());
        double right = 0, calls = 0;
        while (check_measuring(&right)) {
            calls = MPI_Wtime();
            for (int i = 0; i < REPEAT; i++)
                CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax,
                                         check_comm, check_stream));
            calls = MPI_Wtime() - calls;
        }
        double says = 0;
        for (int i = 0; i < (check_modelled() ? 1 : 7); i++) { // the quickest counts
            CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
            if (check_rank == late)
                be_late(buf, host, bytes);
            const double now =
                REPEAT * seconds_of_one(buf, count, REPEAT, check_comm, check_stream);
            CHECK_CUDA(cudaDeviceSynchronize());
            says = i == 0 || now < says ? now : says;
        }
        const double near = check_modelled() ? 0.1 : 0.5;
        const char *why = "";
        if (says > (1 + near) * right)
            why = "\n  What else is in it? A wait after each call costs time, too.";
        if (says > right * (REPEAT - near))
            why = "\n  It includes the wait for a late rank.";
        if (says > right * (REPEAT - near) && late < 0)
            why = "\n  That is the time of all; the task asks for that of one.";
        if (says < 1.1 * calls)
            why = "\n  That is as long as the calls take: they only queue the work.";
        check_that(says > (1 - near) * right && says < (1 + near) * right,
                   "it says %.3g seconds, expected %.3g%s", says / REPEAT, right / REPEAT,
                   why);
    }
}
