//: kind repair
//: title It hangs when it grows
//: trains sends and receives that depend on one another
//: ranks 2 3 | 1 4 7 8
//: calls ncclSend=2 ncclRecv=2
//: only ncclSend ncclRecv
//: starter NCCL CHECK: deadlock
//: learned Sends and receives that wait for one another belong in one group; small messages only hide a missing one.
//: why In one group all four calls progress together, so no send waits for a receive that comes later in the stream.
//: hint The report shows a cycle: each rank waits in its send. When would the receive begin?
//: hint A stream does one thing after the other. What makes several calls one operation?
//: hint ncclGroupStart before the first of the four calls, ncclGroupEnd after the last.
//: file

/*
 * "Each rank of our ring exchanges its edges with both neighbours. The ranks have talked
 * to each other before. It passed all tests, with edges of 10 floats. Now the edges have
 * 10,000, and it hangs."
 *
 * Repair it. (The checks report it with 10 floats, too.)
 */
#include "lesson.h"

/* Sends `right` to the next rank and `left` to the previous one, and receives what these
 * send: into `from_left` what comes from the previous rank, and from the next one into
 * `from_right`. */
void exchange(const float *left, const float *right, float *from_left, float *from_right,
              size_t count, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    //: starter
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    //: solution
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong receive-first: NCCL CHECK: deadlock
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    //: wrong two-groups: NCCL CHECK: deadlock
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong wait-between: NCCL CHECK: deadlock
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    //: wrong no-end: NCCL CHECK: race: cudaMemcpyAsync reads, inside a group, … and is open
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(right, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclSend(left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_left, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(from_right, count, ncclFloat32, next, comm, stream));
    //: end
}
//: check
void exchange(const float *left, const float *right, float *from_left, float *from_right,
              size_t count, int rank, int nranks, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {10, 10000};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        const int previous = (check_rank + check_nranks - 1) % check_nranks;
        const int next = (check_rank + 1) % check_nranks;
        check_case("edges of %zu elements", count);
        float *device[4], *host = check_host(4 * bytes);
        // left, right, and what is to come from the left and from the right
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)check_data(2 * check_rank, i);
            host[count + i] = (float)check_data(2 * check_rank + 1, i);
            host[2 * count + i] = (float)check_data(2 * previous + 1, i);
            host[3 * count + i] = (float)check_data(2 * next, i);
        }
        for (int b = 0; b < 4; b++) {
            device[b] = check_device(bytes);
            if (b < 2)
                check_put(device[b], host + (size_t)b * count, bytes);
        }
        exchange(device[0], device[1], device[2], device[3], count, check_rank,
                 check_nranks, check_comm, check_stream);
        check_buffer("from_left", device[2], host + 2 * count, count, ncclFloat32);
        check_buffer("from_right", device[3], host + 3 * count, count, ncclFloat32);
    }
}
