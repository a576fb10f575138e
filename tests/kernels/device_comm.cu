// Device communicators, right and wrong: device_comm WHAT. tests/lessons/device-api.bats runs it.
#include "lesson.h"

#include <nccl_device.h>

enum { BLOCKS = 3, COUNT = 1000, BYTES = COUNT * sizeof(float) };

// Each rank writes into the part of its right neighbour, and adds up what its left one has written there.
__global__ void around(ncclWindow_t window, int *wrong, int round, ncclDevComm dev) {
    const ncclTeam all = ncclTeamWorld(dev), lsa = ncclTeamLsa(dev);
    const int right = (dev.rank + 1) % all.nRanks, left = (dev.rank + all.nRanks - 1) % all.nRanks;
    ncclLsaBarrierSession<ncclCoopCta> bar{ncclCoopCta(), dev, lsa, dev.lsaBarrier, blockIdx.x};
    bar.sync(ncclCoopCta(), cuda::memory_order_relaxed);
    float *there = (float *)ncclGetPeerPointer(window, 4 * sizeof(float), right);
    const float *same = (const float *)ncclGetPeerPointer(window, 0, lsa, right) + 4;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < COUNT - 4; i += gridDim.x * blockDim.x)
        there[i] = (float)(round + dev.rank + i);
    bar.arrive(ncclCoopCta(), cuda::memory_order_acq_rel);
    bar.wait(ncclCoopCta(), cuda::memory_order_acq_rel);
    const float *mine = (const float *)ncclGetLocalPointer(window, 0);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < COUNT - 4; i += gridDim.x * blockDim.x)
        if (mine[i + 4] != (float)(round + left + i) || same != there)
            atomicAdd(wrong, 1);
    bar.sync(ncclCoopCta(), cuda::memory_order_release);
}

// Not all threads of a block come to each sync: 0 some skip it, 1 some have ended, 2 one alone comes.
__global__ void apart(int how, ncclDevComm dev) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, count = 130;
    if (how == 1 && i >= count)
        return;
    ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), dev, ncclTeamTagLsa(), blockIdx.x);
    if (how != 0 || i < count)
        bar.sync(ncclCoopCta(), cuda::memory_order_acquire);
    if (how != 2 || i == 0)
        bar.sync(ncclCoopCta(), cuda::memory_order_release);
}

static int is(const char *what, const char *name) {
    return strcmp(what, name) == 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "right";
    int rank, nranks;
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    CHECK_CUDA(cudaSetDevice(rank));
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    ncclComm_t comm;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    cudaStream_t stream, other;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ncclCommProperties_t can = NCCL_COMM_PROPERTIES_INITIALIZER;
    CHECK_NCCL(ncclCommQueryProperties(comm, &can));
    if (rank == 0)
        printf("%d LSA teams, %s\n", can.nLsaTeams, can.deviceApiSupport ? "yes" : "no");
    fflush(stdout);
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); // before a rank that fails ends the job
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = is(what, "few-barriers") ? BLOCKS - 1 : BLOCKS;
    wanted.lsaMultimem = is(what, "multimem");
    ncclDevComm dev;
    if (!is(what, "alone") || rank != 1)
        CHECK_NCCL(ncclDevCommCreate(comm, &wanted, &dev));
    if (is(what, "apart"))
        apart<<<BLOCKS, 100, 0, stream>>>(atoi(argv[2]), dev);
    float *memory, *sum;
    int *wrong, found = 0;
    ncclWindow_t window = NULL;
    CHECK_NCCL(ncclMemAlloc((void **)&memory, BYTES));
    CHECK_CUDA(cudaMalloc((void **)&wrong, sizeof *wrong));
    CHECK_CUDA(cudaMalloc((void **)&sum, BYTES));
    CHECK_CUDA(cudaMemsetAsync(wrong, 0, sizeof *wrong, stream));
    CHECK_CUDA(cudaMemsetAsync(sum, 0, BYTES, other));
    if (!is(what, "window-alone") || rank != 1)
        CHECK_NCCL(ncclCommWindowRegister(comm, memory, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    if (is(what, "dies") && rank == 1)
        _Exit(9);
    // On rank 0 the kernel comes first, on the others what needs rank 0 meanwhile.
    if (rank == 0)
        around<<<BLOCKS, 100, 0, stream>>>(window, wrong, 0, dev);
    CHECK_NCCL(ncclAllReduce(sum, sum, COUNT, ncclFloat32, ncclSum, comm, other));
    CHECK_CUDA(cudaStreamSynchronize(other));
    if (rank != 0 && !(is(what, "not-launched") && rank == 1))
        around<<<BLOCKS, 100, 0, stream>>>(window, wrong, 0, dev);
    if (is(what, "comm-early"))
        CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
    if (is(what, "window-early"))
        CHECK_NCCL(ncclCommWindowDeregister(comm, window));
    if (is(what, "free-early"))
        CHECK_NCCL(ncclMemFree(memory));
    for (int round = 1; round < 4; round++)
        around<<<BLOCKS, 100, 0, stream>>>(window, wrong, round, dev);
    CHECK_CUDA(cudaMemcpyAsync(&found, wrong, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
    if (is(what, "comm-late"))
        around<<<BLOCKS, 100, 0, stream>>>(window, wrong, 4, dev);
    CHECK_NCCL(ncclCommWindowDeregister(comm, window));
    CHECK_NCCL(ncclMemFree(memory));
    CHECK_CUDA(cudaFree(sum));
    CHECK_CUDA(cudaFree(wrong));
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    lesson_expect(0, found, 0);
    const int code = lesson_verdict("rank");
    CHECK_MPI(MPI_Finalize());
    return code;
}
