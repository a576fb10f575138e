//: kind complete
//: title One sum in two halves
//: trains what the counts of reduce-scatter and all-gather mean
//: ranks 2 3 | 1 4 7 8
//: only ncclReduceScatter ncclAllGather
//: calls ncclReduceScatter=1 ncclAllGather=1
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of recvbuf is …, expected
//: wrong whole-count s/const size_t part = [^;]*;/const size_t part = count;/: runs past the end
//: wrong at-the-start s/float \*mine = [^;]*;/float *mine = recvbuf;/: overlap, and not as in place demands
//: wrong first-half-only s/CHECK_NCCL\(ncclAllGather[^;]*;//: of recvbuf is
//: wrong one-call s/CHECK_NCCL\(\s*ncclReduceScatter[^;]*;\s*CHECK_NCCL\(ncclAllGather[^;]*;/CHECK_NCCL(ncclAllReduce(sendbuf, recvbuf, count, ncclFloat32, ncclSum, comm, stream));/: does not call ncclReduceScatter
//: wrong default-stream s/comm, stream\)/comm, 0)/g: NCCL CHECK: race: two streams … ncclAllGather(
//: learned Reduce-scatter and all-gather count the elements of one part: the first takes a part for every rank, the second gives one.
//: why Rank r's part of the sum is computed where the all-gather will put it, so nothing is copied within a rank.
//: hint How many elements does each rank have after the first call? That is the count of both calls.
//: hint Put this rank's part of the sum where it belongs in recvbuf: after the parts of the ranks before it.
//: hint part = count / nranks and mine = recvbuf + rank * part; ncclReduceScatter(sendbuf, mine, part, …), then
//:   ncclAllGather(mine, recvbuf, part, …).
//: file

/*
 * Give every rank the sum of all ranks' `sendbuf` in its `recvbuf`, in two halves:
 * a reduce-scatter, then an all-gather. Both buffers have `count` floats in the GPU's
 * memory. The number of ranks divides `count`.
 *
 * Do it without a third buffer. Don't wait: the caller does.
 */
#include "lesson.h"

void sum(const float *sendbuf, float *recvbuf, size_t count, int rank, int nranks,
         ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Your two calls.
    //: solution
    const size_t part = count / (size_t)nranks;
    float *mine = recvbuf + (size_t)rank * part;
    CHECK_NCCL(
        ncclReduceScatter(sendbuf, mine, part, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclAllGather(mine, recvbuf, part, ncclFloat32, comm, stream));
    //: end
}
//: check
void sum(const float *sendbuf, float *recvbuf, size_t count, int rank, int nranks,
         ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t parts[] = {5, 1, 300};
    for (int c = 0; c < 3; c++) {
        const size_t count = parts[c] * (size_t)check_nranks;
        const size_t bytes = count * sizeof(float);
        check_case("%zu elements", count);
        float *sendbuf = check_device(bytes), *recvbuf = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        memset(expected, 0, bytes);
        check_put(recvbuf, expected, bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        check_put(sendbuf, mine, bytes);
        sum(sendbuf, recvbuf, count, check_rank, check_nranks, check_comm, check_stream);
        check_buffer("recvbuf", recvbuf, expected, count, ncclFloat32);
    }
}
