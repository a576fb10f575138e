//: kind build
//: title Gather without receives
//: trains puts, places in a window, one signal for each wait
//: build cpu
//: ranks 2 3 | 4 7 8
//: only ncclPutSignal ncclSignal ncclWaitSignal
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of parts is …, expected
//: learned The writer says where its data goes, in bytes from the start of the window; the reader waits once for each signal.
//: why Each rank puts its part to its own place on all others, and waits for one signal of each of them.
//: hint The lesson's `put` and `wait_for` have both calls. Who gets your part, and how many signals come to you?
//: hint The place is counted in bytes: part number `rank` begins at rank * count * sizeof(float) on every rank.
//: hint Two loops over all peers but yourself: first ncclPutSignal(parts + rank * count, count, ncclFloat32, peer,
//:   window, place, 0, 0, 0, comm, stream), then ncclWaitSignal(1, &one, comm, stream) with one = {.opCnt = 1,
//:   .peer = peer}.
//: file

/*
 * An all-gather with puts. `parts` is a window that all ranks have registered: nranks
 * parts of `count` floats. Each rank has its own part at parts + rank * count. Bring it
 * to the same place on all other ranks, with ncclPutSignal; what comes next on `stream`
 * must find all parts there. Don't wait on the host.
 */
#include "lesson.h"

void gather(float *parts, size_t count, ncclWindow_t window, int rank, int nranks,
            ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Your calls.
    //: solution
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)rank * count * sizeof(float),
                                     0, 0, 0, comm, stream));
    for (int peer = 0; peer < nranks; peer++) {
        ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
        if (peer != rank)
            CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
    }
    //: right one-wait
    ncclWaitSignalDesc_t all[nranks];
    int n = 0;
    for (int peer = 0; peer < nranks; peer++) {
        if (peer == rank)
            continue;
        CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32, peer,
                                 window, (size_t)rank * count * sizeof(float), 0, 0, 0,
                                 comm, stream));
        all[n++] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = peer};
    }
    CHECK_NCCL(ncclWaitSignal(n, all, comm, stream));
    //: wrong in-elements: NCCL CHECK: race: ncclPutSignal writes what another rank reads
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)rank * count, 0, 0, 0, comm,
                                     stream));
    for (int peer = 0; peer < nranks; peer++) {
        ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
        if (peer != rank)
            CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
    }
    //: wrong place-of-the-peer: NCCL CHECK: race: ncclPutSignal writes what another rank reads
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)peer * count * sizeof(float),
                                     0, 0, 0, comm, stream));
    for (int peer = 0; peer < nranks; peer++) {
        ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
        if (peer != rank)
            CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
    }
    //: wrong no-wait: NCCL CHECK: race: ncclPutSignal writes what another rank reads
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)rank * count * sizeof(float),
                                     0, 0, 0, comm, stream));
    //: wrong waits-for-itself: NCCL CHECK: missing: every rank waits
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)rank * count * sizeof(float),
                                     0, 0, 0, comm, stream));
    for (int peer = 0; peer < nranks; peer++) {
        ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = peer};
        CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
    }
    //: wrong left-only: NCCL CHECK: race: ncclPutSignal writes what another rank reads
    for (int peer = 0; peer < nranks; peer++)
        if (peer != rank)
            CHECK_NCCL(ncclPutSignal(parts + (size_t)rank * count, count, ncclFloat32,
                                     peer, window, (size_t)rank * count * sizeof(float),
                                     0, 0, 0, comm, stream));
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = (rank + nranks - 1) % nranks};
    CHECK_NCCL(ncclWaitSignal(1, &one, comm, stream));
    //: wrong gathered: allows only
    CHECK_NCCL(ncclAllGather(parts + (size_t)rank * count, parts, count, ncclFloat32,
                             comm, stream));
    (void)window;
    //: end
}
//: check
void gather(float *parts, size_t count, ncclWindow_t window, int rank, int nranks,
            ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {5, 1, 1001};
    const size_t most = 1001 * sizeof(float) * (size_t)check_nranks;
    float *parts;
    ncclWindow_t window;
    CHECK_NCCL(ncclMemAlloc((void **)&parts, most));
    CHECK_NCCL(ncclCommWindowRegister(check_comm, parts, most, &window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], n = count * (size_t)check_nranks;
        check_case("parts of %zu floats", count);
        float *before = check_host(n * sizeof(float));
        float *expected = check_host(n * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            const int owner = (int)(i / count);
            expected[i] = (float)check_data(owner, i % count);
            before[i] = owner == check_rank ? expected[i] : -1;
        }
        check_put(parts, before, n * sizeof(float));
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (check_rank ==
            c % check_nranks) // one is late: who doesn't wait for it is wrong
            lesson_pause(0.05);
        gather(parts, count, window, check_rank, check_nranks, check_comm, check_stream);
        float *found = check_host(n * sizeof(float));
        CHECK_CUDA(cudaMemcpyAsync(found, parts, n * sizeof(float),
                                   cudaMemcpyDeviceToHost, check_stream));
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
        check_mistake("Nothing has come from the others.", before);
        check_elements("parts", found, expected, n, ncclFloat32);
    }
    CHECK_NCCL(ncclCommWindowDeregister(check_comm, window));
    CHECK_NCCL(ncclMemFree(parts));
}
