//: kind fast
//: title A step in the same kernel
//: trains a kernel that communicates and computes
//: ranks 2 | 1 3 4 7 8
//: clock h200
//: starter it takes … times
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: learned A kernel that loads from all ranks can use what it has loaded: one launch, and the sums never go through memory.
//: why Every rank loads all gradients, adds them in registers, and makes its step: one kernel, nothing stored at others.
//: hint The all-reduce writes sums into memory, and the kernel reads them again. Can one kernel do both?
//: hint The gradients are few, so each rank may load all of them from all ranks. It needs no stores to others.
//: hint A barrier; sum += ((const float *)ncclGetLsaPointer(window, 0, peer))[i] over all peers; then the line of
//:   `step` with that sum; a barrier. Launch it with BLOCKS blocks, and leave the all-reduce out.
//: wrong not-the-mean s/sum \/ nranks/sum/: of the weights is
//: wrong no-last-barrier s/    barrier\.sync\(ncclCoopCta\(\), cuda::memory_order_release\);\n//: of the weights is
//: wrong own-share s/= \(size_t\)blockIdx\.x \* blockDim\.x \+ threadIdx\.x;\n    for/= threadIdx.x + (size_t)blockDim.x * (blockIdx.x + gridDim.x * dev.rank);\n    for/: of the weights is
//: file

/*
 * A step of training with few weights: an all-reduce adds up the gradients, which lie in
 * a window, and a kernel makes the step by their mean. All ranks have the same weights.
 *
 * Make it fast: at most three quarters of what it takes now. As soon as this rank's work
 * on the stream is done, the caller fills `gradient` again. Don't wait: the caller does.
 */
#include "lesson.h"

#include <nccl_device.h>

#ifndef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER // before NCCL 2.29
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    {}
#endif

enum { THREADS = 256, BLOCKS = 4 };

//: starter
__global__ void step(float *weight, const float *sum, size_t count, float nranks) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)blockDim.x * gridDim.x)
        weight[i] -= sum[i] / nranks;
}
//: solution
__global__ void step(float *weight, ncclWindow_t window, size_t count, ncclDevComm dev) {
    const float nranks = (float)dev.nRanks;
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), dev, ncclTeamTagLsa(),
                                               blockIdx.x);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)blockDim.x * gridDim.x) {
        float sum = 0;
        for (int peer = 0; peer < dev.nRanks; peer++)
            sum += ((const float *)ncclGetLsaPointer(window, 0, peer))[i];
        weight[i] -= sum / nranks;
    }
    barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}
//: end

/* One device communicator for all launches. */
static ncclDevComm dev;

extern "C" void begin(ncclComm_t comm) {
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    wanted.lsaBarrierCount = BLOCKS;
    CHECK_NCCL(ncclDevCommCreate(comm, &wanted, &dev));
}

/* `sum` is room for as many floats, if you need it. */
extern "C" void train_step(float *weight, float *gradient, ncclWindow_t window,
                           float *sum, size_t count, ncclComm_t comm,
                           cudaStream_t stream) {
    //: starter
    CHECK_NCCL(ncclAllReduce(gradient, sum, count, ncclFloat32, ncclSum, comm, stream));
    step<<<BLOCKS, THREADS, 0, stream>>>(weight, sum, count, (float)dev.nRanks);
    //: solution
    step<<<BLOCKS, THREADS, 0, stream>>>(weight, window, count, dev);
    //: end
    CHECK_CUDA(cudaGetLastError());
}

extern "C" void end(ncclComm_t comm) {
    CHECK_NCCL(ncclDevCommDestroy(comm, &dev));
}
//: check

void begin(ncclComm_t comm);
void train_step(float *weight, float *gradient, ncclWindow_t window, float *sum,
                size_t count, ncclComm_t comm, cudaStream_t stream);
void end(ncclComm_t comm);

enum { COUNT = 1500, ROUNDS = 5 };

void check(void) {
    const size_t bytes = COUNT * sizeof(float);
    float *gradient;
    ncclWindow_t window;
    CHECK_NCCL(ncclMemAlloc((void **)&gradient, bytes));
    CHECK_NCCL(ncclCommWindowRegister(check_comm, gradient, bytes, &window,
                                      NCCL_WIN_COLL_SYMMETRIC));
    begin(check_comm);
    check_case("%d weights", COUNT);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    float *weight = check_device(bytes), *sum = check_device(bytes),
          *other = check_device(bytes);
    CHECK_CUDA(cudaMemsetAsync(weight, 0, bytes, check_stream));
    CHECK_CUDA(cudaMemsetAsync(other, 0, bytes, check_stream));
    memset(expected, 0, bytes);
    // The first all-reduce waits on the host.
    CHECK_NCCL(
        ncclAllReduce(other, sum, COUNT, ncclFloat32, ncclSum, check_comm, check_stream));
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    // In odd rounds one rank fills its gradients last, when the others' kernels may run.
    // In even ones its kernel is the first, and then this rank is slow: the others go on.
    for (int round = 1; round <= ROUNDS; round++) {
        const int slow = round / 2 % check_nranks;
        const bool last = (round % 2 == 1) == (check_rank == slow);
        for (size_t i = 0; i < COUNT; i++) {
            float all = 0;
            mine[i] = (float)(check_data(check_rank, i) + 100 * round);
            for (int r = 0; r < check_nranks; r++)
                all += (float)(check_data(r, i) + 100 * round);
            expected[i] -= all / (float)check_nranks;
        }
        if (last)
            CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        check_put(gradient, mine, bytes);
        train_step(weight, gradient, window, sum, COUNT, check_comm, check_stream);
        if (!last) {
            cudaStreamQuery(check_stream);
            CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
        if (round % 2 == 0 && check_rank == slow)
            lesson_pause(0.05);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double now = 0, alone = 0;
    while (check_measuring(&alone))
        CHECK_NCCL(ncclAllReduce(gradient, sum, COUNT, ncclFloat32, ncclSum, check_comm,
                                 check_stream));
    while (check_measuring(&now))
        train_step(other, gradient, window, sum, COUNT, check_comm, check_stream);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    end(check_comm);
    CHECK_NCCL(ncclCommWindowDeregister(check_comm, window));
    CHECK_NCCL(ncclMemFree(gradient));
    check_buffer("the weights", weight, expected, COUNT, ncclFloat32);
    check_time(now, check_modelled() ? 0.8 : 1.0, alone, "the all-reduce alone");
}
