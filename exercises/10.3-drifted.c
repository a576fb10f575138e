//: kind build
//: title Has a copy drifted?
//: trains comparing something on all ranks
//: ranks 3 4 | 1 2 7 8
//: starter expected true
//: wrong only-min s/return ends\[0\] == ends\[1\];/return ends[0] == *sum;/: but false on others
//: learned The copies on all ranks are equal if the smallest checksum is the largest, and then every rank knows it.
//: why Smallest and largest are the same on all ranks, so all of them come to the same answer. Without the last wait it works, too: cudaMemcpyAsync from the GPU into ordinary memory returns only when the copy is done. Into pinned memory it returns at once, and then the wait is needed.
//: hint A rank sees only its own checksum. Which reductions say something about all of them, on all ranks?
//: hint A sum can be right by chance: one copy has one more and another has one less. Can the smallest and the largest?
//: hint ncclAllReduce with ncclMin into `scratch`, and with ncclMax into `scratch + 1`; copy both to the host; wait.
//: file

/*
 * Each rank has a checksum of its copy of the weights, in the host's memory. Return true
 * on all ranks if all ranks have the same checksum, and false on all ranks if not.
 *
 * `scratch` has room for four checksums in the GPU's memory. Use NCCL, not MPI: the
 * function is called in the middle of a step, when every rank has queued work.
 */
#include "lesson.h"

bool all_equal(uint64_t checksum, uint64_t *scratch, int nranks, ncclComm_t comm,
               cudaStream_t stream) {
    //: starter
    // Your code.
    return false;
    //: solution
    uint64_t ends[2];
    const uint64_t *sum = &checksum;
    CHECK_CUDA(
        cudaMemcpyAsync(scratch + 2, sum, sizeof *sum, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(scratch + 2, scratch, 1, ncclUint64, ncclMin, comm, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch + 2, scratch + 1, 1, ncclUint64, ncclMax, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(ends, scratch, sizeof ends, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return ends[0] == ends[1];
    //: right without-the-last-wait
    uint64_t ends[2];
    CHECK_CUDA(cudaMemcpyAsync(scratch + 2, &checksum, sizeof checksum,
                               cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(scratch + 2, scratch, 1, ncclUint64, ncclMin, comm, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch + 2, scratch + 1, 1, ncclUint64, ncclMax, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(ends, scratch, sizeof ends, cudaMemcpyDeviceToHost, stream));
    return ends[0] == ends[1];
    //: wrong mean: but true on others; expected: false on all
    uint64_t all;
    CHECK_CUDA(
        cudaMemcpyAsync(scratch, &checksum, sizeof all, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(scratch, scratch, 1, ncclUint64, ncclSum, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(&all, scratch, sizeof all, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return all == checksum * (uint64_t)nranks;
    //: wrong like-rank-0: rank 0: it returns true here, but false on others; expected: false on all
    uint64_t first;
    CHECK_CUDA(cudaMemcpyAsync(scratch, &checksum, sizeof first, cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclBroadcast(scratch, scratch, 1, ncclUint64, 0, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(&first, scratch, sizeof first, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return first == checksum;
    //: wrong as-int32: it returns true, but
    uint64_t ends[2] = {0};
    CHECK_CUDA(cudaMemcpyAsync(scratch + 2, &checksum, sizeof checksum,
                               cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemsetAsync(scratch, 0, sizeof ends, stream));
    CHECK_NCCL(ncclAllReduce(scratch + 2, scratch, 1, ncclUint32, ncclMin, comm, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch + 2, scratch + 1, 1, ncclUint32, ncclMax, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(ends, scratch, sizeof ends, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    return ends[0] == ends[1];
    //: end
}
//: check
bool all_equal(uint64_t checksum, uint64_t *scratch, int nranks, ncclComm_t comm,
               cudaStream_t stream);

enum { EQUAL, LAST_DIFFERS, CANCELS, ZERO_DIFFERS, UPPER_HALF, ALL_DIFFER, CASES };

void check(void) {
    const char *names[] = {"all have the same",        "only the last rank differs",
                           "one has more, one less",   "rank 0 has 0, the others don't",
                           "the upper 32 bits differ", "every rank has its own"};
    const bool last = check_rank == check_nranks - 1;
    for (int c = 0; c < CASES; c++) {
        check_case("checksums: %s", names[c]);
        // The largest numbers of 64 bits, too: who takes them as signed finds another
        // order, and who takes them as doubles loses digits.
        uint64_t mine = 0xfedcba9876543210;
        if (c == LAST_DIFFERS && last)
            mine++;
        if (c == CANCELS)
            mine += (uint64_t)(check_rank == 0) - (uint64_t)last;
        if (c == ZERO_DIFFERS && check_rank == 0)
            mine = 0;
        if (c == UPPER_HALF && last)
            mine -= (uint64_t)1 << 40;
        if (c == ALL_DIFFER)
            mine += (uint64_t)check_rank;
        const bool expected = c == EQUAL || check_nranks == 1;
        if (check_nranks == 1)
            mine = 7;
        uint64_t *scratch = check_device(4 * sizeof *scratch);
        const bool got = all_equal(mine, scratch, check_nranks, check_comm, check_stream);
        int ranks = 0, mine_true = got;
        CHECK_MPI(MPI_Allreduce(&mine_true, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        check_that(ranks == 0 || ranks == check_nranks,
                   "it returns %s here, but %s on others; expected: %s on all",
                   got ? "true" : "false", got ? "false" : "true",
                   expected ? "true" : "false");
        check_that(got == expected, "it returns %s, but %s", got ? "true" : "false",
                   expected ? "all ranks have the same checksum: expected true"
                            : "not all ranks have the same checksum: expected false");
    }
}
