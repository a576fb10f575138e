//: kind complete
//: title How many will come?
//: trains an all-to-all of counts, and the host's wait
//: ranks 2 3 | 1 4 7 8
//: starter come[0] is
//: wrong no-group s/    CHECK_NCCL.ncclGroup(Start|End)...;\n//g: a send to oneself
//: wrong same-to-all s/ncclSend.there \+ peer/ncclSend(there/: come[0] is
//: wrong all-counts s/peer, 1,/peer, nranks,/g: NCCL CHECK:
//: wrong not-back s/ncclRecv.here \+ peer/ncclRecv(there + peer/: NCCL CHECK:
//: wrong other-type s/ncclUint64/ncclInt/g: A uint64_t has 8 bytes
//: wrong no-wait s/    CHECK_CUDA.cudaStreamSynchronize.stream..;\n//: as before: the number has not come yet
//: learned Before tokens can travel, each rank tells every other how many it will get; and the host has to wait for that.
//: why The number for a peer is leave[peer]; what comes from it has its place in come[peer].
//: hint Each rank has a number for every peer, and gets one from every peer. Which pattern is that?
//: hint One send and one receive of one ncclUint64 for each peer, all in one group.
//: hint ncclSend(there + peer, 1, ncclUint64, peer, …) and ncclRecv(here + peer, …), between
//:   ncclGroupStart and ncclGroupEnd.
//: file

/*
 * This rank has leave[peer] tokens for each rank. Put into come[peer] how many come from
 * each. Both lists are in pinned memory of the host, and the caller reads come as soon as
 * this function returns. `there` and `here` have room for such a list in the GPU's
 * memory.
 */
#include "lesson.h"

void exchange_counts(const uint64_t *leave, uint64_t *come, uint64_t *there,
                     uint64_t *here, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const size_t bytes = (size_t)nranks * sizeof(uint64_t);
    CHECK_CUDA(cudaMemcpyAsync(there, leave, bytes, cudaMemcpyHostToDevice, stream));
    //: starter
    // Yours: from `there` to `here`, with NCCL.
    //: solution
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < nranks; peer++) {
        CHECK_NCCL(ncclSend(there + peer, 1, ncclUint64, peer, comm, stream));
        CHECK_NCCL(ncclRecv(here + peer, 1, ncclUint64, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: end
    CHECK_CUDA(cudaMemcpyAsync(come, here, bytes, cudaMemcpyDeviceToHost, stream));
    //: starter
    // And here?
    //: solution
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: end
}
//: check
#include <inttypes.h>

void exchange_counts(const uint64_t *leave, uint64_t *come, uint64_t *there,
                     uint64_t *here, int nranks, ncclComm_t comm, cudaStream_t stream);

static uint64_t *pinned(size_t bytes) {
    uint64_t *memory = lesson_malloc(bytes);
    CHECK_CUDA(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    return memory;
}

static void unpin(uint64_t *memory) {
    CHECK_CUDA(cudaHostUnregister(memory));
    free(memory);
}

void check(void) {
    const size_t n = (size_t)check_nranks, bytes = n * sizeof(uint64_t);
    uint64_t *leave = pinned(bytes), *come = pinned(bytes);
    const uint64_t before = UINT64_MAX;
    for (int step = 0; step < 2; step++) {
        check_case("step %d", step);
        uint64_t *there = check_device(bytes), *here = check_device(bytes);
        for (size_t peer = 0; peer < n; peer++) {
            leave[peer] = (uint64_t)check_data(check_rank, peer);
            come[peer] = before;
        }
        check_put(here, come, bytes);
        exchange_counts(leave, come, there, here, check_nranks, check_comm, check_stream);
        for (size_t peer = 0; peer < n; peer++) {
            const uint64_t expected = (uint64_t)check_data((int)peer, (size_t)check_rank);
            const char *why = "";
            if (come[peer] == before)
                why = "\n  It is as before: the number has not come yet.";
            else if ((uint8_t)come[peer] == expected)
                why = "\n  Only part of it has come. A uint64_t has 8 bytes.";
            check_that(come[peer] == expected,
                       "come[%zu] is %" PRIu64 ", expected %" PRIu64 "%s", peer,
                       come[peer], expected, why);
        }
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
    }
    unpin(come);
    unpin(leave);
}
