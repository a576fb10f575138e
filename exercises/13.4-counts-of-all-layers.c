//: kind fast
//: title One wait for all layers
//: trains fewer and larger messages
//: ranks 3 | 2 4 8
//: clock h200
//: starter for one layer alone
//: wrong wait-later: for one layer alone
//: wrong mixed-up s/\(size_t\)peer \* layers/peer/g: two calls of one group
//: wrong no-wait s/    CHECK_CUDA.cudaStreamSynchronize.stream..;\n//: It is as before
//: wrong elements s/, layers, ncclUint64/, bytes, ncclUint64/g: NCCL CHECK:
//: learned Small messages cost latency and not bandwidth: sixteen counts in one message take as long as one.
//: why The counts for a peer stand side by side, so one send carries those of all layers.
//: hint How long does a message of one number take, and how long one of sixteen?
//: hint The counts of all layers for one peer follow one another in memory.
//: hint No loop over the layers: copy once, send `layers` numbers to each peer, copy back once,
//:   wait once.
//: file

/*
 * Here, all tokens have chosen their experts in all layers before the step begins. To
 * `peer`, leave[peer * layers + l] of them go in layer l. Put into come[peer * layers +
 * l] how many come from there. The caller reads it as soon as the function returns.
 *
 * The function works, but it exchanges layer by layer. Make it fast: it may take at most
 * 1.5 times as long as for one layer alone. `there` and `here` have room for such a table
 * in the GPU's memory; leave and come are in pinned memory of the host.
 */
#include "lesson.h"

void exchange_counts(const uint64_t *leave, uint64_t *come, uint64_t *there,
                     uint64_t *here, size_t layers, ncclComm_t comm,
                     cudaStream_t stream) {
    int nranks;
    CHECK_NCCL(ncclCommCount(comm, &nranks));
    const size_t bytes = (size_t)nranks * layers * sizeof(uint64_t);
    //: starter
    for (size_t l = 0; l < layers; l++) {
        CHECK_CUDA(cudaMemcpyAsync(there, leave, bytes, cudaMemcpyHostToDevice, stream));
        CHECK_NCCL(ncclGroupStart());
        for (int peer = 0; peer < nranks; peer++) {
            const size_t i = (size_t)peer * layers + l;
            CHECK_NCCL(ncclSend(there + i, 1, ncclUint64, peer, comm, stream));
            CHECK_NCCL(ncclRecv(here + i, 1, ncclUint64, peer, comm, stream));
        }
        CHECK_NCCL(ncclGroupEnd());
        CHECK_CUDA(cudaMemcpyAsync(come, here, bytes, cudaMemcpyDeviceToHost, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: solution
    CHECK_CUDA(cudaMemcpyAsync(there, leave, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < nranks; peer++) {
        const size_t i = (size_t)peer * layers;
        CHECK_NCCL(ncclSend(there + i, layers, ncclUint64, peer, comm, stream));
        CHECK_NCCL(ncclRecv(here + i, layers, ncclUint64, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    CHECK_CUDA(cudaMemcpyAsync(come, here, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong wait-later
    CHECK_CUDA(cudaMemcpyAsync(there, leave, bytes, cudaMemcpyHostToDevice, stream));
    for (size_t l = 0; l < layers; l++) {
        CHECK_NCCL(ncclGroupStart());
        for (int peer = 0; peer < nranks; peer++) {
            const size_t i = (size_t)peer * layers + l;
            CHECK_NCCL(ncclSend(there + i, 1, ncclUint64, peer, comm, stream));
            CHECK_NCCL(ncclRecv(here + i, 1, ncclUint64, peer, comm, stream));
        }
        CHECK_NCCL(ncclGroupEnd());
    }
    CHECK_CUDA(cudaMemcpyAsync(come, here, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: end
}
//: check
void exchange_counts(const uint64_t *leave, uint64_t *come, uint64_t *there,
                     uint64_t *here, size_t layers, ncclComm_t comm, cudaStream_t stream);

static uint64_t *pinned(size_t bytes) {
    uint64_t *memory = lesson_malloc(bytes);
    CHECK_CUDA(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    return memory;
}

static void unpin(uint64_t *memory) {
    CHECK_CUDA(cudaHostUnregister(memory));
    free(memory);
}

static double run(size_t layers, uint64_t *leave, uint64_t *come) {
    check_case("%zu layers", layers);
    const size_t n = (size_t)check_nranks * layers, bytes = n * sizeof(uint64_t);
    uint64_t *there = check_device(bytes), *here = check_device(bytes);
    for (size_t i = 0; i < n; i++) {
        leave[i] = (uint64_t)check_data(check_rank, i);
        come[i] = 1000;
    }
    check_put(here, come, bytes);
    exchange_counts(leave, come, there, here, layers, check_comm, check_stream);
    for (size_t i = 0; i < n; i++) {
        const int peer = (int)(i / layers);
        const int expected = check_data(peer, (size_t)check_rank * layers + i % layers);
        check_that((int)come[i] == expected, "come[%zu] is %d, expected %d%s", i,
                   (int)come[i], expected,
                   come[i] == 1000 ? "\n  It is as before: the number has not come yet."
                                   : "");
    }
    double seconds = 0;
    while (check_measuring(&seconds))
        exchange_counts(leave, come, there, here, layers, check_comm, check_stream);
    return seconds;
}

void check(void) {
    enum { LAYERS = 16 };
    const size_t bytes = (size_t)check_nranks * LAYERS * sizeof(uint64_t);
    uint64_t *leave = pinned(bytes), *come = pinned(bytes);
    const double one = run(1, leave, come), all = run(LAYERS, leave, come);
    check_time(all, check_modelled() ? 1.5 : 2, one, "for one layer alone");
    unpin(come);
    unpin(leave);
}
