//: kind complete
//: title Which chunk now?
//: trains an all-gather by a ring
//: ranks 3 4 | 1 2 7 8
//: only ncclSend ncclRecv
//: starter Only the previous rank's chunk has come.
//: learned In a ring, what came in with one step goes out with the next.
//: why In step s a rank passes on the chunk that began s ranks before it, and gets the one that began one rank further back.
//: hint In step 0 a rank can only send its own chunk. Which one comes in from the previous rank then?
//: hint What goes out in step 1 came in with step 0. And the numbers go around: before chunk 0 comes chunk
//:   nranks - 1.
//: hint out = (rank - step + nranks) % nranks; `in` is the one before it.
//: wrong one-forgets s/CHECK_NCCL.ncclRecv/if (rank != 1) CHECK_NCCL(ncclRecv/: NCCL CHECK: deadlock
//: file

/*
 * All-gather by a ring: each rank sends only to the next one and receives only from the
 * previous one. At the beginning chunk `rank` of buf is filled, at the end all nranks
 * chunks are. Each has `count` floats. Complete it: which chunk goes out with a step, and
 * which one comes in?
 */
#include "lesson.h"

void ring_all_gather(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
                     cudaStream_t stream) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    for (int step = 0; step < nranks - 1; step++) {
        //: starter
        const int out = rank, in = previous; // so far the same in every step
        //: solution
        const int out = (rank - step + nranks) % nranks;
        const int in = (rank - step - 1 + nranks) % nranks;
        //: wrong forwards: All chunks have come, but not each to its own place.
        const int out = (rank + step) % nranks, in = (rank + step + 1) % nranks;
        //: wrong own-again: The previous rank's chunk has come in every step.
        const int out = rank, in = (rank - step - 1 + nranks) % nranks;
        //: wrong negative: NCCL CHECK:
        const int out = (rank - step) % nranks, in = (rank - step - 1) % nranks;
        //: wrong same-chunk: NCCL CHECK: race: two calls of one group
        const int out = (rank - step + nranks) % nranks, in = out;
        //: end
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(
            ncclSend(buf + (size_t)out * count, count, ncclFloat32, next, comm, stream));
        CHECK_NCCL(ncclRecv(buf + (size_t)in * count, count, ncclFloat32, previous, comm,
                            stream));
        CHECK_NCCL(ncclGroupEnd());
    }
}
//: check
void ring_all_gather(float *buf, size_t count, int rank, int nranks, ncclComm_t comm,
                     cudaStream_t stream);

static float element(int chunk, size_t i) {
    return (float)check_data((chunk + check_nranks) % check_nranks, i);
}

void check(void) {
    const size_t counts[] = {3, 1, 301};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], total = count * (size_t)check_nranks;
        const size_t bytes = total * sizeof(float);
        check_case("chunks of %zu elements", count);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        float *first = check_host(bytes), *same = check_host(bytes);
        float *mirrored = check_host(bytes);
        for (size_t i = 0; i < total; i++) {
            const int owner = (int)(i / count), back = check_rank - owner;
            const int previous = (check_rank + check_nranks - 1) % check_nranks;
            expected[i] = element(owner, i % count);
            mine[i] = back == 0 ? expected[i] : 0;
            first[i] = owner == previous ? expected[i] : mine[i];
            same[i] = element(back == 0 ? owner : previous, i % count);
            mirrored[i] = element(check_rank + back, i % count);
        }
        float *buf = check_device(bytes);
        check_put(buf, mine, bytes);
        ring_all_gather(buf, count, check_rank, check_nranks, check_comm, check_stream);
        check_mistake("Only the previous rank's chunk has come.", first);
        check_mistake("The previous rank's chunk has come in every step.", same);
        check_mistake("All chunks have come, but not each to its own place.", mirrored);
        check_buffer("buf", buf, expected, total, ncclFloat32);
    }
}
