//: kind complete
//: title The missing broadcast
//: instead any type of four bytes => any type of eight bytes ; ints => longs ; int *buf => long *buf ; int *expected => long *expected ; sizeof(int) => sizeof(long) ; ncclInt32 => ncclInt64
//: instead any type of four bytes => any type of eight bytes ; ints => doubles ; int *buf => double *buf ; int *expected => double *expected ; sizeof(int) => sizeof(double) ; ncclInt32 => ncclFloat64
//: trains ncclBroadcast: count, type, root
//: ranks 2 3 8 | 1 4 7
//: calls ncclBroadcast=1
//: only ncclBroadcast
//: no cudaStreamSynchronize cudaDeviceSynchronize
//: starter element 0 of buf is …, expected
//: learned All ranks make the same call; the root says whose data it is, and count counts elements.
//: why Every rank makes the same call with the same root; the stream puts it after all that was queued before. A
//:   broadcast only moves bytes, so any type of four bytes would do; ncclInt32 says what they are.
//: hint Lesson 01 has the call in "The lines that matter". Which of its arguments is fixed there and
//:   a parameter here?
//: hint ncclBroadcast takes: send buffer, receive buffer, number of elements, type, root,
//:   communicator, stream. In place, both buffers are the same pointer. The stream is your
//:   parameter: 0 would be the default stream.
//: hint CHECK_NCCL(ncclBroadcast(buf, buf, …, ncclInt32, …, comm, stream)); fill in the two gaps.
//: file

/*
 * Rank `root` has `count` ints in buf, in the memory of its GPU. Bring them into buf on
 * all other ranks, with one NCCL call on `stream`. Don't wait for it: the caller does.
 */
#include "lesson.h"

void share(int *buf, size_t count, int root, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Your call.
    //: solution
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root, comm, stream));
    //: wrong root-0: On 2 ranks, 4 elements, root 1 … element 0 of buf is 0, expected
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, 0, comm, stream));
    //: wrong bytes: NCCL CHECK: memory:
    CHECK_NCCL(
        ncclBroadcast(buf, buf, count * sizeof(int), ncclInt32, root, comm, stream));
    //: wrong root-only: rank 1 has not begun this operation
    int rank;
    CHECK_NCCL(ncclCommUserRank(comm, &rank));
    if (rank == root)
        CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root, comm, stream));
    //: wrong sum: does not call ncclBroadcast
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclInt32, ncclMax, comm, stream));
    //: wrong waits: your file calls cudaStreamSynchronize at
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong default-stream: NCCL CHECK: race: … ncclBroadcast(
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root, comm, 0));
    //: end
}
//: check
void share(int *buf, size_t count, int root, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {4, 1, 1001};
    for (int c = 0; c < 3; c++) {
        for (int root = 0; root<check_nranks; root += check_nranks> 3 ? 3 : 1) {
            const size_t count = counts[c], bytes = count * sizeof(int);
            check_case("%zu elements, root %d", count, root);
            int *buf = check_device(bytes), *mine = check_host(bytes);
            int *expected = check_host(bytes);
            for (size_t i = 0; i < count; i++) {
                mine[i] = check_rank == root ? check_data(root, i) : 0;
                expected[i] = check_data(root, i);
            }
            check_put(buf, mine, bytes);
            share(buf, count, root, check_comm, check_stream);
            check_mistake("It is as it was: nothing has come.", mine);
            check_buffer("buf", buf, expected, count, ncclInt32);
        }
    }
}
