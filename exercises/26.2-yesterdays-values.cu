//: kind repair
//: title Yesterday's values
//: trains what a barrier before the loads is for, and one after them
//: ranks 2 3 | 1 4 7 8
//: starter of the largest values is
//: learned A kernel may load from another rank when that rank's values are in place, and may end when nobody loads from it any more: a barrier for each.
//: why The first barrier waits until the kernels of all ranks run, so all that was queued before them on their streams is done. The second keeps each rank from filling `from` anew while others still load.
//: hint What does rank 0 know about the stream of rank 1 when its own kernel starts?
//: hint A kernel starts when the work before it on its own stream is done. What makes it wait for the streams of the others?
//: hint barrier.sync(ncclCoopCta(), cuda::memory_order_acquire); before the loads, and one with
//:   cuda::memory_order_release after them. Every thread must reach both, so neither stands in the loop or in an if.
//: wrong only-before s/    barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_release\);\n//: of the largest values is
//: wrong only-after s/    barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_acquire\);\n//: of the largest values is
//: wrong arrive-only s/barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_acquire/barrier.arrive(ncclCoopCta(), cuda::memory_order_acquire/: of the largest values is
//: file

/*
 * Each rank wants to know, of each element, the largest value of all ranks. With one
 * round it worked. Training has many rounds: a rank fills `from`, calls this, and fills
 * `from` with the next values. Sometimes the result has values of the round before, or of
 * the round after. Repair the kernel.
 */
#include "lesson.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 128, BLOCKS = 2 };

__global__ void largest(ncclWindow_t from, float *to, size_t count, ncclDevComm dev) {
    const int nranks = ncclTeamLsa(dev).nRanks;
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), dev, ncclTeamTagLsa(),
                                               blockIdx.x);
    //: starter
    //: solution
    barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);
    //: end
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)blockDim.x * gridDim.x) {
        float most = 0;
        for (int peer = 0; peer < nranks; peer++)
            most = fmaxf(most, ((const float *)ncclGetLsaPointer(from, 0, peer))[i]);
        to[i] = most;
    }
    //: starter
    //: solution
    barrier.sync(ncclCoopCta(), cuda::memory_order_release);
    //: end
}

/* One device communicator for all launches. */
static ncclDevComm dev;

extern "C" void begin(ncclComm_t comm) {
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = BLOCKS;
    CHECK_NCCL(ncclDevCommCreate(comm, &wanted, &dev));
}

extern "C" void largest_of_all(ncclWindow_t from, float *to, size_t count,
                               cudaStream_t stream) {
    largest<<<BLOCKS, THREADS, 0, stream>>>(from, to, count, dev);
    CHECK_CUDA(cudaGetLastError());
}

extern "C" void end(ncclComm_t comm) {
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
}
//: check

void begin(ncclComm_t comm);
void largest_of_all(ncclWindow_t from, float *to, size_t count, cudaStream_t stream);
void end(ncclComm_t comm);

enum { COUNT = 1000, ROUNDS = 5 };

static float value(int round, int rank, size_t i) {
    return (float)(check_data(rank, i) + 100 * round);
}

/* In odd rounds one rank fills its values last, when the others' kernels may run. In even
 * ones its kernel is the first, and then this rank is slow: the others go on. */
static void play(int round, float *from, const float *mine, ncclWindow_t window,
                 float *to) {
    const int slow = round / 2 % check_nranks;
    const bool last = (round % 2 == 1) == (check_rank == slow);
    if (last)
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    check_put(from, mine, COUNT * sizeof(float));
    largest_of_all(window, to, COUNT, check_stream);
    if (!last) {
        cudaStreamQuery(check_stream);
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (round % 2 == 0 && check_rank == slow)
        lesson_pause(0.05);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
}

void check(void) {
    const size_t bytes = COUNT * sizeof(float);
    float *from;
    ncclWindow_t window;
    CHECK_NCCL(ncclMemAlloc((void **)&from, bytes));
    CHECK_NCCL(ncclCommWindowRegister(check_comm, from, bytes, &window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    begin(check_comm);
    check_case("%d rounds of %d elements", ROUNDS, COUNT);
    float *mine = check_host(bytes), *got = check_host(ROUNDS * bytes);
    float *expected = check_host(bytes), *to = check_device(bytes);
    CHECK_CUDA(cudaMemsetAsync(from, 0, bytes, check_stream));
    for (int round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < COUNT; i++)
            mine[i] = value(round, check_rank, i);
        play(round, from, mine, window, to);
        check_get(got + (size_t)(round - 1) * COUNT, to, bytes);
    }
    end(check_comm);
    CHECK_NCCL(ncclCommWindowDeregister(check_comm, window));
    CHECK_NCCL(ncclMemFree(from));
    for (int round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                if (value(round, r, i) > expected[i])
                    expected[i] = value(round, r, i);
        }
        check_elements("the largest values", got + (size_t)(round - 1) * COUNT, expected,
                       COUNT, ncclFloat32);
    }
}
