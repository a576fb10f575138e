//: kind complete
//: title The other half
//: trains an all-to-all: which block comes from whom
//: ranks 2 3 | 1 4 7 8
//: only ncclSend ncclRecv
//: starter a send to oneself, …, without the other half
//: learned Every send has its receive on the other side, and both go into the same group.
//: why What comes from `peer` is block `peer` of recvbuf, and the receives are in the group of the sends.
//: hint Rank r sends its block j to rank j. So from whom does rank j receive, and how often?
//: hint A receive for each peer, beside the send to it. Which block of recvbuf belongs to that peer?
//: hint ncclRecv(recvbuf + block, count, ncclInt32, peer, comm, stream), in the loop.
//: file

/*
 * All-to-all: block j of rank r's sendbuf is for rank j, and comes into block r of rank
 * j's recvbuf. A block has `count` ints. The sends are here already. Complete it.
 */
#include "lesson.h"

void all_to_all(const int *sendbuf, int *recvbuf, size_t count, int rank, int nranks,
                ncclComm_t comm, cudaStream_t stream) {
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < nranks; peer++) {
        const size_t block = (size_t)peer * count;
        CHECK_NCCL(ncclSend(sendbuf + block, count, ncclInt32, peer, comm, stream));
        //: starter
        // Something is missing.
        //: solution
        CHECK_NCCL(ncclRecv(recvbuf + block, count, ncclInt32, peer, comm, stream));
        //: wrong own-block: NCCL CHECK: race: two calls of one group
        CHECK_NCCL(ncclRecv(recvbuf + (size_t)rank * count, count, ncclInt32, peer, comm,
                            stream));
        //: wrong from-oneself: a receive from oneself, without the other half
        CHECK_NCCL(ncclRecv(recvbuf + block, count, ncclInt32, rank, comm, stream));
        //: wrong whole-buffer: NCCL CHECK: race: two calls of one group
        CHECK_NCCL(
            ncclRecv(recvbuf, count * (size_t)nranks, ncclInt32, peer, comm, stream));
        //: wrong to-sendbuf: NCCL CHECK:
        CHECK_NCCL(
            ncclRecv((int *)sendbuf + block, count, ncclInt32, peer, comm, stream));
        //: wrong not-oneself: a send to oneself, …, without the other half
        if (peer != rank)
            CHECK_NCCL(ncclRecv(recvbuf + block, count, ncclInt32, peer, comm, stream));
        //: end
    }
    CHECK_NCCL(ncclGroupEnd());
}
//: check
void all_to_all(const int *sendbuf, int *recvbuf, size_t count, int rank, int nranks,
                ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {4, 1, 301};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], total = count * (size_t)check_nranks;
        check_case("blocks of %zu elements", count);
        int *mine = check_host(total * sizeof *mine);
        int *expected = check_host(total * sizeof *expected);
        for (size_t i = 0; i < total; i++) {
            mine[i] = check_data(check_rank, i);
            expected[i] =
                check_data((int)(i / count), (size_t)check_rank * count + i % count);
        }
        int *sendbuf = check_device(total * sizeof *mine);
        int *recvbuf = check_device(total * sizeof *mine);
        check_put(sendbuf, mine, total * sizeof *mine);
        check_put(recvbuf,
                  memset(check_host(total * sizeof *mine), 0, total * sizeof *mine),
                  total * sizeof *mine);
        all_to_all(sendbuf, recvbuf, count, check_rank, check_nranks, check_comm,
                   check_stream);
        check_mistake("These are this rank's own blocks, as they lay.", mine);
        check_buffer("recvbuf", recvbuf, expected, total, ncclInt32);
    }
}
