//: kind complete
//: title My part of the sum
//: trains ncclReduceScatter: what its count means
//: ranks 2 3 | 1 4 7 8
//: calls ncclReduceScatter=1
//: only ncclReduceScatter
//: starter element 0 of part is 0, expected
//: learned The count of a reduce-scatter is what one rank receives, and part r of the sum goes to rank r.
//: why Each rank receives total / nranks elements; NCCL itself chooses the part that belongs to the rank.
//: hint Lesson 03 has a table under "Which count?". What does the count of ncclReduceScatter count?
//: hint `all` has nranks times as many elements as `part`. The address to read from is the same on every rank.
//: hint ncclReduceScatter(all, part, …, ncclFloat32, ncclSum, comm, stream), with total / nranks.
//: file

/*
 * Each rank has `total` floats in `all`, and nranks divides `total`. Add them up over all
 * ranks, but give each rank only its part of the sums, in `part`: rank 0 the first
 * total / nranks of them, rank 1 the next, and so on. One NCCL call on `stream` does it.
 */
#include "lesson.h"

void my_part(const float *all, float *part, size_t total, int nranks, ncclComm_t comm,
             cudaStream_t stream) {
    //: starter
    // Your call.
    //: solution
    const size_t count = total / (size_t)nranks;
    CHECK_NCCL(ncclReduceScatter(all, part, count, ncclFloat32, ncclSum, comm, stream));
    //: wrong whole-length: NCCL CHECK: memory
    CHECK_NCCL(ncclReduceScatter(all, part, total, ncclFloat32, ncclSum, comm, stream));
    //: wrong bytes: NCCL CHECK: memory
    const size_t bytes = total / (size_t)nranks * sizeof(float);
    CHECK_NCCL(ncclReduceScatter(all, part, bytes, ncclFloat32, ncclSum, comm, stream));
    //: wrong own-address: NCCL CHECK: memory
    const size_t count = total / (size_t)nranks;
    int rank;
    CHECK_NCCL(ncclCommUserRank(comm, &rank));
    CHECK_NCCL(ncclReduceScatter(all + (size_t)rank * count, part, count, ncclFloat32,
                                 ncclSum, comm, stream));
    //: wrong all-reduce: These are the sums of rank 0's part.
    const size_t count = total / (size_t)nranks;
    CHECK_NCCL(ncclAllReduce(all, part, count, ncclFloat32, ncclSum, comm, stream));
    //: wrong mean: This is the mean
    const size_t count = total / (size_t)nranks;
    CHECK_NCCL(ncclReduceScatter(all, part, count, ncclFloat32, ncclAvg, comm, stream));
    //: end
}
//: check
void my_part(const float *all, float *part, size_t total, int nranks, ncclComm_t comm,
             cudaStream_t stream);

void check(void) {
    const size_t counts[] = {4, 1, 334}, n = (size_t)check_nranks;
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu elements in all", count * n);
        float *mine = check_host(n * bytes), *all = check_device(n * bytes);
        float *part = check_device(bytes), *zeros = check_host(bytes);
        float *expected = check_host(bytes), *first = check_host(bytes);
        float *mean = check_host(bytes);
        for (size_t i = 0; i < n * count; i++)
            mine[i] = (float)(check_nranks *
                              check_data(check_rank, i)); // so that a mean is whole
        for (size_t i = 0; i < count; i++) {
            mean[i] = first[i] = zeros[i] = 0;
            for (int r = 0; r < check_nranks; r++) {
                mean[i] += (float)check_data(r, (size_t)check_rank * count + i);
                first[i] += (float)check_data(r, i) * (float)check_nranks;
            }
            expected[i] = mean[i] * (float)check_nranks;
        }
        check_put(all, mine, n * bytes);
        check_put(part, zeros, bytes);
        my_part(all, part, n * count, check_nranks, check_comm, check_stream);
        if (check_rank > 0)
            check_mistake("These are the sums of rank 0's part.", first);
        if (check_nranks > 1)
            check_mistake("This is the mean: the task asks for the sum.", mean);
        check_buffer("part", part, expected, count, ncclFloat32);
    }
}
