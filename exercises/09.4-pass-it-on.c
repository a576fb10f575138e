//: kind fast
//: title Pass it on in pieces
//: trains sending one piece while the next one arrives
//: clock h200
//: ranks 4 | 6 7 8
//: starter it takes … times
//: only ncclSend ncclRecv
//: learned A rank that passes data on should do so piece by piece, and receive the next piece while it sends the last.
//: why In each step a rank receives one piece and sends the one before it, both in one group, so the links of all ranks are busy.
//: hint What does rank 3 do while the buffer travels from rank 0 to rank 1?
//: hint Cut the buffer into a few pieces (each call has its latency). Which piece can a rank send while it receives piece p?
//: hint For p = 0 to PIECES: a group with the receive of piece p (if there is one, and not on rank 0) and the send of piece
//:   p - 1 (on rank 0: of piece p).
//: file

/*
 * A broadcast along a chain: rank 0 has `count` floats, and each rank passes them on to
 * the next. Make it faster: it should take at most 0.75 times as long. Use only ncclSend
 * and ncclRecv, from each rank to the next one. 8 divides `count`.
 *
 * When the function returns, the work may still be queued on `stream`.
 */
#include "lesson.h"

void pass_on(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
             cudaStream_t stream) {
    //: starter
    if (rank > 0)
        CHECK_NCCL(ncclRecv(buf, count, ncclFloat32, rank - 1, comm, stream));
    if (rank < nranks - 1)
        CHECK_NCCL(ncclSend(buf, count, ncclFloat32, rank + 1, comm, stream));
    //: solution
    const size_t pieces = 8, piece = count / pieces;
    for (size_t p = 0; p <= pieces; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (rank > 0 && p < pieces)
            CHECK_NCCL(
                ncclRecv(buf + p * piece, piece, ncclFloat32, rank - 1, comm, stream));
        if (rank < nranks - 1 && p > 0)
            CHECK_NCCL(ncclSend(buf + (p - 1) * piece, piece, ncclFloat32, rank + 1, comm,
                                stream));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: wrong by-turns: it takes … times
    const size_t pieces = 8, piece = count / pieces;
    for (size_t p = 0; p < pieces; p++) {
        if (rank > 0)
            CHECK_NCCL(
                ncclRecv(buf + p * piece, piece, ncclFloat32, rank - 1, comm, stream));
        if (rank < nranks - 1)
            CHECK_NCCL(
                ncclSend(buf + p * piece, piece, ncclFloat32, rank + 1, comm, stream));
    }
    //: wrong same-piece: NCCL CHECK: race
    const size_t pieces = 8, piece = count / pieces;
    for (size_t p = 0; p < pieces; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (rank > 0)
            CHECK_NCCL(
                ncclRecv(buf + p * piece, piece, ncclFloat32, rank - 1, comm, stream));
        if (rank < nranks - 1)
            CHECK_NCCL(
                ncclSend(buf + p * piece, piece, ncclFloat32, rank + 1, comm, stream));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: wrong last-piece-forgotten: of buf is
    const size_t pieces = 8, piece = count / pieces;
    for (size_t p = 0; p < pieces; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (rank > 0 && p < pieces - 1)
            CHECK_NCCL(
                ncclRecv(buf + p * piece, piece, ncclFloat32, rank - 1, comm, stream));
        if (rank < nranks - 1 && p > 0)
            CHECK_NCCL(ncclSend(buf + (p - 1) * piece, piece, ncclFloat32, rank + 1, comm,
                                stream));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: wrong too-many-pieces: it takes … times
    const size_t pieces = 128, piece = count / pieces;
    for (size_t p = 0; p <= pieces; p++) {
        CHECK_NCCL(ncclGroupStart());
        if (rank > 0 && p < pieces)
            CHECK_NCCL(
                ncclRecv(buf + p * piece, piece, ncclFloat32, rank - 1, comm, stream));
        if (rank < nranks - 1 && p > 0)
            CHECK_NCCL(ncclSend(buf + (p - 1) * piece, piece, ncclFloat32, rank + 1, comm,
                                stream));
        CHECK_NCCL(ncclGroupEnd());
    }
    //: end
}
//: check
void pass_on(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
             cudaStream_t stream);

static void whole(float *buf, size_t count) {
    if (check_rank > 0)
        CHECK_NCCL(
            ncclRecv(buf, count, ncclFloat32, check_rank - 1, check_comm, check_stream));
    if (check_rank < check_nranks - 1)
        CHECK_NCCL(
            ncclSend(buf, count, ncclFloat32, check_rank + 1, check_comm, check_stream));
}

void check(void) {
    const size_t count = (check_modelled() ? 4 : 64) << 20, bytes = count * sizeof(float);
    check_case("%zu elements", count);
    float *buf = check_device(bytes), *other = check_device(bytes);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    memset(mine, 0, bytes);
    for (size_t i = 0; i < count; i++)
        expected[i] = (float)(i % 99991 + 1);
    check_put(buf, check_rank == 0 ? expected : mine, bytes);
    check_put(other, check_rank == 0 ? expected : mine, bytes);
    double theirs = 0, yours = 0;
    while (check_measuring(&theirs))
        whole(other, count);
    while (check_measuring(&yours))
        pass_on(buf, count, check_rank, check_nranks, check_comm, check_stream);
    check_buffer("buf", buf, expected, count, ncclFloat32);
    check_time(yours, check_modelled() ? 0.75 : 0.9, theirs, "in one piece");
}
