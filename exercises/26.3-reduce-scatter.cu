//: kind build
//: title Reduce-scatter by loads
//: trains LSA pointers, a block's barriers, offsets in bytes
//: ranks 2 3 | 1 4 7 8
//: no ncclReduceScatter ncclAllReduce ncclReduce cudaMemcpy cudaMemcpyAsync
//: starter of the sums is
//: learned A reduce-scatter by LSA needs no stores to others: each rank loads its own part from all ranks, and a barrier on each side says when it may.
//: why Every rank loads part `rank` from the windows of all ranks and adds. The first barrier says that the values are there, the second that nobody loads any more.
//: hint Begin with the lesson's kernel. Here a rank shares its elements with nobody: its own threads take all of 0 to
//:   count - 1, so team.rank and team.nRanks leave the lines of `threads` and `i`. The sum goes into this rank's `to`.
//: hint Your part begins with element team.rank * count of every rank's window. The offset of ncclGetLsaPointer counts
//:   bytes; adding to the pointer afterwards counts elements.
//: hint sum += ((const float *)ncclGetLsaPointer(from, 0, peer))[team.rank * count + i]; between two calls of
//:   barrier.sync, and to[i] = sum.
//: wrong no-first-barrier s/    barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_acquire\);\n//: Is there a barrier before the loads
//: wrong no-last-barrier s/    barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_release\);\n//: Is there a barrier before the loads
//: wrong first-part s/\[team\.rank \* count \+ i\]/[i]/: of the sums is
//: wrong offset-in-elements s/\(from, 0, peer\)\)\[team\.rank \* count \+ i\]/(from, team.rank * count, peer))[i]/: of the sums is
//: wrong sync-in-if s/    barrier\.sync\((.*?)\);/    if (threadIdx.x + blockIdx.x * blockDim.x < count)\n        barrier.sync($1);/g: of 128 threads are in a barrier session's sync
//: file

/*
 * A reduce-scatter in a kernel. `from` is a window of nranks * count floats on each rank.
 * Rank r adds up part r of all ranks, elements r * count to r * count + count - 1, and
 * stores the sums in its own `to`, which is no window.
 *
 * A rank may launch its kernel late, and may fill `from` only shortly before. And it
 * fills `from` with the next values as soon as its own kernel has ended. Load and store;
 * call NCCL for nothing but the device communicator.
 */
#include "lesson.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 128, BLOCKS = 4 };

__global__ void reduce_scatter(ncclWindow_t from, float *to, size_t count,
                               ncclDevComm dev) {
    //: starter
    // Your kernel. It runs with BLOCKS blocks, whatever the count.
    //: solution
    const ncclTeam team = ncclTeamLsa(dev);
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), dev, ncclTeamTagLsa(),
                                               blockIdx.x);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)blockDim.x * gridDim.x) {
        float sum = 0;
        for (int peer = 0; peer < team.nRanks; peer++)
            sum +=
                ((const float *)ncclGetLsaPointer(from, 0, peer))[team.rank * count + i];
        to[i] = sum;
    }
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

extern "C" void sums(ncclWindow_t from, float *to, size_t count, cudaStream_t stream) {
    reduce_scatter<<<BLOCKS, THREADS, 0, stream>>>(from, to, count, dev);
    CHECK_CUDA(cudaGetLastError());
}

extern "C" void end(ncclComm_t comm) {
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
}
//: check

void begin(ncclComm_t comm);
void sums(ncclWindow_t from, float *to, size_t count, cudaStream_t stream);
void end(ncclComm_t comm);

enum { MOST = 1000, ROUNDS = 5 };

static float value(int round, int rank, size_t i) {
    return (float)(check_data(rank, i) + 100 * round);
}

/* In odd rounds one rank fills its values last, when the others' kernels may run. In even
 * ones its kernel is the first, and then this rank is slow: the others go on. */
static void play(int round, size_t count, float *from, const float *mine,
                 ncclWindow_t window, float *to) {
    const int slow = round / 2 % check_nranks;
    const bool last = (round % 2 == 1) == (check_rank == slow);
    if (last)
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    check_put(from, mine, count * (size_t)check_nranks * sizeof(float));
    sums(window, to, count, check_stream);
    if (!last) {
        cudaStreamQuery(check_stream);
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (round % 2 == 0 && check_rank == slow)
        lesson_pause(0.05);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
}

/* So much off is a sum with values of another round. */
static bool hundreds(float off) {
    for (int k = -ROUNDS * check_nranks; k <= ROUNDS * check_nranks; k++)
        if (off == (float)(100 * k))
            return true;
    return false;
}

/* Round 0 only leaves its values. */
static void rounds(size_t count, float *from, ncclWindow_t window) {
    const size_t all = count * (size_t)check_nranks;
    float *mine = check_host(all * sizeof(float)),
          *expected = check_host(count * sizeof(float));
    float *got = check_host(ROUNDS * count * sizeof(float));
    float *to = check_device(count * sizeof(float));
    CHECK_CUDA(cudaMemsetAsync(to, 0, count * sizeof(float), check_stream));
    for (int round = 0; round <= ROUNDS; round++) {
        for (size_t i = 0; i < all; i++)
            mine[i] = value(round, check_rank, i);
        if (round == 0) {
            check_put(from, mine, all * sizeof(float));
            CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
            continue;
        }
        play(round, count, from, mine, window, to);
        check_get(got + (size_t)(round - 1) * count, to, count * sizeof(float));
    }
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 1; round <= ROUNDS; round++) {
        const float *mixed = got + (size_t)(round - 1) * count;
        bool others = true;
        for (size_t i = 0; i < count; i++) {
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += value(round, r, (size_t)check_rank * count + i);
            others = others && hundreds(mixed[i] - expected[i]);
        }
        if (others)
            check_mistake("Some ranks' values are those of another round. Is there a"
                          " barrier before the loads, and one after them?",
                          mixed);
        check_elements("the sums", mixed, expected, count, ncclFloat32);
    }
}

void check(void) {
    const size_t bytes = MOST * (size_t)check_nranks * sizeof(float);
    float *from;
    ncclWindow_t window;
    CHECK_NCCL(ncclMemAlloc((void **)&from, bytes));
    CHECK_NCCL(ncclCommWindowRegister(check_comm, from, bytes, &window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    begin(check_comm);
    const size_t counts[] = {5, MOST};
    for (int c = 0; c < 2; c++) {
        check_case("%zu elements for each rank", counts[c]);
        rounds(counts[c], from, window);
    }
    end(check_comm);
    CHECK_NCCL(ncclCommWindowDeregister(check_comm, window));
    CHECK_NCCL(ncclMemFree(from));
}
