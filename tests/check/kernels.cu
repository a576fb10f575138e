// A program in C++ with kernels of its own, one process a GPU: it sets a vector up, adds it
// up over all ranks, scales it and checks it, with kernels on two streams between NCCL's
// calls. Nothing is wrong with it: the checks must take its kernels for what they are,
// operations in their streams.
//
//     nvcc -ccbin mpicxx -cudart shared kernels.cu -lnccl -o kernels
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                                       \
    do {                                                                                 \
        int code_ = static_cast<int>(call);                                              \
        if (code_ != 0) {                                                                \
            std::fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call,   \
                         code_);                                                         \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                \
        }                                                                                \
    } while (0)

template <typename T> __global__ void fill(T *to, int n, T value) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = value + static_cast<T>(i % 7);
}

template <typename T> __global__ void scale(T *values, int n, T by) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] *= by;
}

__global__ void count_wrong(const float *values, int n, float first, float step, int *wrong) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (values[i] != first + step * static_cast<float>(i % 7))
            atomicAdd(wrong, 1);
}

// Gives its memory back when the program leaves its block, as C++ programs do.
template <typename T> class Buffer {
  public:
    explicit Buffer(size_t n) {
        MUST(cudaMalloc(&at_, n * sizeof(T)));
    }
    ~Buffer() {
        cudaFree(at_);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    T *get() const {
        return at_;
    }

  private:
    T *at_ = nullptr;
};

// This rank's number among those of its machine: hosts are compared by a hash of their names.
static int local_rank(int rank, int nranks) {
    char host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    std::vector<uint64_t> hashes(static_cast<size_t>(nranks));
    uint64_t hash = 5381;
    for (int i = 0; i < length; i++)
        hash = hash * 33 ^ static_cast<unsigned char>(host[i]);
    hashes[static_cast<size_t>(rank)] = hash;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, hashes.data(), 1, MPI_UINT64_T,
                  MPI_COMM_WORLD);
    int before = 0;
    for (int r = 0; r < rank; r++)
        before += hashes[static_cast<size_t>(r)] == hash;
    return before;
}

static int work(int rank, int nranks, ncclComm_t comm) {
    const int n = 1 << 20;
    cudaStream_t compute, communicate;
    cudaEvent_t ready, summed;
    MUST(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&communicate, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming));
    int nwrong = 0;
    {
        Buffer<float> mine(n), sum(n);
        Buffer<int> wrong(1);
        MUST(cudaMemsetAsync(wrong.get(), 0, sizeof(int), compute));
        for (int round = 0; round < 20; round++) {
            fill<float><<<128, 256, 0, compute>>>(mine.get(), n, static_cast<float>(rank));
            MUST(cudaGetLastError());
            MUST(cudaEventRecord(ready, compute));
            MUST(cudaStreamWaitEvent(communicate, ready, 0));
            MUST(ncclAllReduce(mine.get(), sum.get(), n, ncclFloat, ncclSum, comm, communicate));
            MUST(cudaEventRecord(summed, communicate));
            MUST(cudaStreamWaitEvent(compute, summed, 0));
            float two = 2;
            float *at = sum.get();
            int many = n;
            void *arguments[] = {&at, &many, &two};
            MUST(cudaLaunchKernel(reinterpret_cast<const void *>(scale<float>), dim3(128),
                                  dim3(256), arguments, 0, compute));
            count_wrong<<<128, 256, 0, compute>>>(
                sum.get(), n, static_cast<float>(nranks * (nranks - 1)),
                static_cast<float>(2 * nranks), wrong.get());
            MUST(cudaGetLastError());
        }
        MUST(cudaMemcpyAsync(&nwrong, wrong.get(), sizeof nwrong, cudaMemcpyDeviceToHost, compute));
        MUST(cudaStreamSynchronize(compute));
    }
    MUST(cudaEventDestroy(summed));
    MUST(cudaEventDestroy(ready));
    MUST(cudaStreamDestroy(communicate));
    MUST(cudaStreamDestroy(compute));
    return nwrong;
}

int main(int argc, char **argv) {
    int rank, nranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    MUST(cudaSetDevice(local_rank(rank, nranks)));
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    MUST(ncclCommInitRank(&comm, nranks, id, rank));
    int wrong = work(rank, nranks, comm);
    MUST(ncclCommDestroy(comm));
    MPI_Finalize();
    if (wrong)
        std::fprintf(stderr, "rank %d: %d elements are wrong\n", rank, wrong);
    else if (rank == 0)
        std::printf("OK: %d ranks\n", nranks);
    return wrong != 0;
}
