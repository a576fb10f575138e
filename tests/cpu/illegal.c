/*
 * What a GPU answers with an illegal access breaks the device and moves nothing:
 * addresses of the host, past the end, freed before. CUDA Runtime API, "Error Handling",
 * cudaErrorIllegalAddress. And what it answers in a forked process. Without MPI.
 */
#define TAP_ALONE
#include "ints.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 3000 };
#define BYTES (N * sizeof(int))

static ncclComm_t comm;
static cudaStream_t stream;

static void begin(void) {
    int device = 0;
    NCCL(ncclCommInitAll(&comm, 1, &device));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

/* Every call that could tell says so, until the device is reset. */
static void broken(const char *what) {
    void *more;
    cudaEvent_t event;
    cudaError_t error = cudaStreamSynchronize(stream);
    expect(error == cudaErrorIllegalAddress, "%s: %s", what, cudaGetErrorName(error));
    CUDA_IS(cudaErrorIllegalAddress, cudaGetLastError());
    CUDA_IS(cudaErrorIllegalAddress, cudaStreamQuery(stream));
    CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    CUDA_IS(cudaErrorIllegalAddress, cudaMalloc(&more, 4));
    CUDA(cudaEventCreate(&event));
    CUDA_IS(cudaErrorIllegalAddress, cudaEventRecord(event, stream));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaSetDevice(1)); /* another device knows nothing of it */
    CUDA(cudaMalloc(&more, 4));
    CUDA(cudaFree(more));
    CUDA(cudaSetDevice(0));
    NCCL(ncclCommAbort(comm));
    CUDA(cudaDeviceReset());
    cudaGetLastError();
    point("%s", what);
    begin();
}

/* In a process that was forked off after the first call of CUDA. An H200 answers CUDA's
 * calls so; what NCCL answers was not tried there. */
static void forked(void) {
    int status = 1, devices;
    CUDA(cudaGetDeviceCount(&devices));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *memory;
        int n = 0;
        bool as_on_gpus = cudaMalloc(&memory, 4) == cudaErrorInitializationError &&
                          cudaSetDevice(0) == cudaErrorInitializationError &&
                          cudaDeviceSynchronize() == cudaErrorInitializationError &&
                          cudaGetLastError() == cudaErrorInitializationError &&
                          cudaGetDeviceCount(&n) == cudaSuccess && n == devices;
        ncclUniqueId id;
        as_on_gpus &= ncclGetUniqueId(&id) == ncclUnhandledCudaError;
        _exit(!as_on_gpus);
    }
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    CUDA(cudaDeviceSynchronize());
    point("a forked process cannot use CUDA");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    begin();
    int *a = new_ints(N), *b = new_ints(N), *y, *host = calloc(N, sizeof(int));

    int *fresh = malloc(BYTES);
    CUDA(cudaMemcpy(fresh, a, BYTES, cudaMemcpyDeviceToHost));
    expect_all(fresh, N, -1, "fresh memory");
    NCCL(ncclMemAlloc((void **)&y, BYTES));
    CUDA(cudaMemcpy(fresh, y, BYTES, cudaMemcpyDeviceToHost));
    expect_all(fresh, N, -1, "fresh memory of NCCL");
    NCCL(ncclMemFree(y));
    CUDA(cudaMallocAsync((void **)&y, BYTES, stream));
    CUDA(cudaMemcpyAsync(fresh, y, BYTES, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect_all(fresh, N, -1, "fresh memory of a stream");
    CUDA(cudaFreeAsync(y, stream));
    CUDA(cudaStreamSynchronize(stream));
    free(fresh);
    point("fresh device memory is no number of any float type");

    /* A copy is refused at once where the runtime can see it. */
    CUDA_IS(cudaErrorInvalidValue,
            cudaMemcpy(a + 1, host, BYTES, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidValue, cudaMemset(a, 0, BYTES + 1));
    CUDA_IS(cudaErrorInvalidValue, cudaMemcpy2D(a + 1, BYTES / 2, host, BYTES / 2,
                                                BYTES / 2, 2, cudaMemcpyHostToDevice));
    CUDA_IS(cudaErrorInvalidValue, cudaMemset2D(a, BYTES / 2, 0, BYTES / 2, 3));
    CUDA(cudaMemset2D(a, BYTES / 2, 0, BYTES / 2, 2));
    cudaGetLastError();
    CUDA(cudaDeviceSynchronize());
    point("copies and sets past the end");

    NCCL(ncclAllReduce(host, b, N, ncclInt32, ncclSum, comm, stream));
    broken("NCCL gets memory of the host to read");

    b = new_ints(N);
    NCCL(ncclAllReduce(b, host, N, ncclInt32, ncclSum, comm, stream));
    broken("NCCL gets memory of the host to write");
    expect_all(host, N, 0, "written");

    b = new_ints(N);
    NCCL(ncclAllReduce(b + 1, b, N, ncclInt32, ncclSum, comm, stream));
    broken("NCCL reads past the end");

    a = new_ints(N);
    b = new_ints(N);
    CUDA(cudaFree(a));
    NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclSum, comm, stream));
    broken("NCCL reads what was freed");

    a = new_ints(N);
    b = new_ints(N);
    CUDA(cudaFreeAsync(a, stream));
    NCCL(ncclAllReduce(a, b, N, ncclInt32, ncclSum, comm, stream));
    broken("NCCL reads what is freed before it on the stream");

    a = new_ints(N);
    b = new_ints(N);
    CUDA(cudaFreeAsync(a, stream));
    CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, stream));
    broken("a copy reads what is freed before it on the stream");

    /* What is queued after is not done. */
    a = new_ints(N);
    memset(host, 0, BYTES);
    NCCL(ncclAllReduce(host, a, N, ncclInt32, ncclSum, comm, stream));
    CUDA(cudaMemsetAsync(a, 1, BYTES, stream));
    broken("what is queued behind an illegal access");

    a = new_ints(N);
    int *gone = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaMemcpyAsync(a, gone, BYTES, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    munmap(gone, BYTES);
    CUDA(cudaGraphLaunch(executable, stream));
    broken("a graph copies memory of the host that is gone");
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));

    forked();
    free(host);
    NCCL(ncclCommDestroy(comm));
    point("clean-up");
    return finish();
}
