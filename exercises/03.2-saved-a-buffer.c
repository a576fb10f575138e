//: kind repair
//: title A buffer saved
//: trains where the two halves may work in place
//: ranks 2 3 | 1 4 7 8
//: calls ncclReduceScatter=1 ncclAllGather=1
//: starter NCCL CHECK: mismatch: the buffers of … overlap
//: learned In place, a rank's part lies where it belongs in the whole buffer: at rank times count.
//: why Reduce-scatter leaves the part where it lies in the buffer, and all-gather sends it from there. What the other
//:   parts hold in between, the manual doesn't say; the all-gather overwrites them. Why were small sums right? A small buffer
//:   goes in one piece, and NCCL has read it before it writes the result. Of a large one, the first results overwrite
//:   what later pieces still need.
//: hint The report says which two buffers overlap, and which places are allowed.
//: hint Where in the whole buffer does the part of rank 2 lie?
//: hint float *part = buf + (size_t)rank * count; it is the receive buffer of the first call and the send
//:   buffer of the second.
//: file

/*
 * "An all-reduce in two halves needs a buffer for the part in between. I save it: both
 * calls work in `buf`. With small buffers the sums were right, with large ones they are
 * not."
 *
 * `buf` has nranks * count floats. Repair it without another buffer.
 */
#include "lesson.h"

void sum_in_two_halves(float *buf, size_t count, int rank, ncclComm_t comm,
                       cudaStream_t stream) {
    //: starter
    CHECK_NCCL(ncclReduceScatter(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(buf, buf, count, ncclFloat32, comm, stream));
    //: solution
    float *part = buf + (size_t)rank * count;
    CHECK_NCCL(ncclReduceScatter(buf, part, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(part, buf, count, ncclFloat32, comm, stream));
    //: wrong first-half-only: NCCL CHECK: mismatch: the buffers of ncclAllGather overlap
    float *part = buf + (size_t)rank * count;
    CHECK_NCCL(ncclReduceScatter(buf, part, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(buf, buf, count, ncclFloat32, comm, stream));
    //: wrong second-half-only: NCCL CHECK: mismatch: the buffers of ncclReduceScatter overlap
    float *part = buf + (size_t)rank * count;
    CHECK_NCCL(ncclReduceScatter(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(part, buf, count, ncclFloat32, comm, stream));
    //: wrong one-element: NCCL CHECK: mismatch: the buffers of ncclReduceScatter overlap
    float *part = buf + rank;
    CHECK_NCCL(ncclReduceScatter(buf, part, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(part, buf, count, ncclFloat32, comm, stream));
    //: wrong both-moved: NCCL CHECK: … ncclReduceScatter
    float *part = buf + (size_t)rank * count;
    CHECK_NCCL(ncclReduceScatter(part, part, count, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(part, part, count, ncclFloat32, comm, stream));
    //: wrong one-call: does not call ncclReduceScatter
    int nranks;
    CHECK_NCCL(ncclCommCount(comm, &nranks));
    CHECK_NCCL(ncclAllReduce(buf, buf, count * (size_t)nranks, ncclFloat32, ncclSum, comm,
                             stream));
    //: end
}
//: check
void sum_in_two_halves(float *buf, size_t count, int rank, ncclComm_t comm,
                       cudaStream_t stream);

void check(void) {
    const size_t counts[] = {3, 1, 251};
    for (int c = 0; c < 3; c++) {
        const size_t total = counts[c] * (size_t)check_nranks;
        const size_t bytes = total * sizeof(float);
        check_case("%zu elements for each rank", counts[c]);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < total; i++) {
            mine[i] = (float)check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        float *buf = check_device(bytes);
        check_put(buf, mine, bytes);
        sum_in_two_halves(buf, counts[c], check_rank, check_comm, check_stream);
        check_buffer("buf", buf, expected, total, ncclFloat32);
    }
}
