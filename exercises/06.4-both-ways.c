//: kind fast
//: title Both ways at once
//: trains what a link carries in each direction
//: clock h200
//: ranks 2 4 | 1 3 7 8
//: only ncclSend ncclRecv
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter it takes … times
//: learned A link carries data in both directions at once; a send and a receive in one group use both.
//: why In one group the send and the receive progress together, and each has a direction of the link for itself.
//: hint How many bytes cross the link, in each direction? When is one of them idle?
//: hint Even ranks send, then receive. What makes one operation of both?
//: hint ncclGroupStart, ncclSend, ncclRecv, ncclGroupEnd, the same on even and on odd ranks.
//: file

/*
 * Each rank swaps a large buffer with its partner. To avoid a deadlock, even ranks send
 * first and odd ones receive first. That is right, but slow. Make it faster: it should
 * take at most 0.7 times as long. Don't wait: the caller does.
 */
#include "lesson.h"

void swap(const float *mine, float *theirs, size_t count, int rank, int partner,
          ncclComm_t comm, cudaStream_t stream) {
    //: starter
    if (rank % 2 == 0) {
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    } else {
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    }
    //: solution
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong halves: it takes … times
    for (size_t first = 0; first < count; first += count / 2) {
        const size_t part = first + count / 2 > count ? count - first : count / 2;
        if (rank % 2 == 0) {
            CHECK_NCCL(ncclSend(mine + first, part, ncclFloat32, partner, comm, stream));
            CHECK_NCCL(
                ncclRecv(theirs + first, part, ncclFloat32, partner, comm, stream));
        } else {
            CHECK_NCCL(
                ncclRecv(theirs + first, part, ncclFloat32, partner, comm, stream));
            CHECK_NCCL(ncclSend(mine + first, part, ncclFloat32, partner, comm, stream));
        }
    }
    //: wrong no-order: NCCL CHECK: deadlock
    CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    //: wrong two-groups: it takes … times
    CHECK_NCCL(ncclGroupStart());
    if (rank % 2 == 0)
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    else
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    if (rank % 2 == 1)
        CHECK_NCCL(ncclSend(mine, count, ncclFloat32, partner, comm, stream));
    else
        CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong one-half: of theirs is
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, count / 2, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count / 2, ncclFloat32, partner, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void swap(const float *mine, float *theirs, size_t count, int rank, int partner,
          ncclComm_t comm, cudaStream_t stream);

static void in_turn(const float *mine, float *theirs, size_t count, int partner) {
    for (int turn = 0; turn < 2; turn++) {
        if (check_rank % 2 == turn)
            CHECK_NCCL(
                ncclSend(mine, count, ncclFloat32, partner, check_comm, check_stream));
        else
            CHECK_NCCL(
                ncclRecv(theirs, count, ncclFloat32, partner, check_comm, check_stream));
    }
}

void check(void) {
    const size_t count = (check_modelled() ? 1 << 18 : 1 << 24) + 1,
                 bytes = count * sizeof(float);
    const int partner = check_rank ^ 1;
    const bool has = partner < check_nranks; // the last of an odd number has none
    check_case("%zu elements", count);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    for (size_t i = 0; i < count; i++) {
        mine[i] = (float)check_data(check_rank, i);
        expected[i] = (float)check_data(partner, i);
    }
    float *from = check_device(bytes), *to = check_device(bytes);
    check_put(from, mine, bytes);
    check_put(to, memset(mine, 0, bytes), bytes);
    if (has) {
        swap(from, to, count, check_rank, partner, check_comm, check_stream);
        check_buffer("theirs", to, expected, count, ncclFloat32);
    }
    double theirs = 0, yours = 0;
    while (check_measuring(&theirs))
        if (has)
            in_turn(from, to, count, partner);
    while (check_measuring(&yours))
        if (has)
            swap(from, to, count, check_rank, partner, check_comm, check_stream);
    if (check_nranks > 1)
        check_time(yours, 0.7, theirs, "one way after the other");
}
