//: kind fast
//: title Grow a tree
//: trains a broadcast by a tree, from sends
//: clock leonardo
//: ranks 8 3 | 1 2 4 7
//: only ncclSend ncclRecv
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter it takes … times
//: learned In a tree everyone who has the data passes it on, so the number of those who have it doubles with every step.
//: why After step k, 2^k ranks have the data and all of them send: eight ranks need three steps, and no GPU sends more than three times.
//: hint Where does the time go? Everything leaves through the links of one GPU. After its first send there is a second
//:   rank that has the data.
//: hint Step by step 1, 2, 4, … ranks have it. In each of these steps rank r of those that have it sends to rank
//:   r + 1, r + 2, r + 4, …
//: hint for (int have = 1; have < nranks; have *= 2): a rank below `have` sends to rank + have, if there is such
//:   a rank; a rank from `have` to 2 * have - 1 receives from rank - have.
//: file

/*
 * A broadcast from rank 0, made of sends. Here rank 0 sends the data to everybody. Make
 * it faster, with sends and receives of NCCL only: on 8 ranks, four on each of two nodes,
 * it should take at most 0.3 times as long. It must work on any number of ranks. Don't
 * wait: the caller does.
 */
#include "lesson.h"

void broadcast(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
               cudaStream_t stream) {
    //: starter
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 1; rank == 0 && peer < nranks; peer++)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, peer, comm, stream));
    if (rank > 0)
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, 0, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: solution
    for (int have = 1; have < nranks; have *= 2) {
        if (rank < have && rank + have < nranks)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + have, comm, stream));
        else if (rank >= have && rank < 2 * have)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - have, comm, stream));
    }
    //: wrong chain: it takes … times
    if (rank > 0)
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - 1, comm, stream));
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + 1, comm, stream));
    //: wrong one-after-another: it takes … times
    for (int peer = 1; rank == 0 && peer < nranks; peer++)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, peer, comm, stream));
    if (rank > 0)
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, 0, comm, stream));
    //: wrong beyond-the-last: On 3 ranks
    for (int have = 1; have < nranks; have *= 2) {
        if (rank < have)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + have, comm, stream));
        else if (rank < 2 * have)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - have, comm, stream));
    }
    //: wrong all-receive: NCCL CHECK:
    for (int have = 1; have < nranks; have *= 2) {
        if (rank < have && rank + have < nranks)
            CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + have, comm, stream));
        else if (rank >= have)
            CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - have, comm, stream));
    }
    //: wrong by-nccl: allows only ncclRecv, ncclSend
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclFloat32, 0, comm, stream));
    //: end
}
//: check
void broadcast(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
               cudaStream_t stream);

static void star(float *buf, size_t count) {
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 1; check_rank == 0 && peer < check_nranks; peer++)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, peer, check_comm, check_stream));
    if (check_rank > 0)
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, 0, check_comm, check_stream));
    CHECK_NCCL(ncclGroupEnd());
}

void check(void) {
    const size_t counts[] = {1, check_modelled() ? 1 << 20 : 1 << 26};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu floats", count);
        float *buf = check_device(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++)
            expected[i] = (float)check_data(0, i);
        CHECK_CUDA(cudaMemset(buf, 0, bytes));
        CHECK_CUDA(cudaDeviceSynchronize());
        if (check_rank == 0)
            check_put(buf, expected, bytes);
        broadcast(buf, count, check_rank, check_nranks, check_comm, check_stream);
        check_buffer("buf", buf, expected, count, ncclFloat32);
        if (count == 1)
            continue;
        double theirs = 0, yours = 0;
        while (check_measuring(&theirs))
            star(buf, count);
        while (check_measuring(&yours))
            broadcast(buf, count, check_rank, check_nranks, check_comm, check_stream);
        if (check_nranks >= 7)
            check_time(yours, check_modelled() ? 0.3 : 0.8, theirs,
                       "sends from rank 0 to all");
    }
}
