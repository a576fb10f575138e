// Processes that are forked off: one that begins with CUDA where its parent has not yet;
// one that ends, and releases at its exit what was its parent's; one that asks how many
// devices there are, which is answered, and what an error means; one that becomes another
// program. Once its parent has a communicator, a child leaves by _exit: the end of NCCL
// 2.30.7 in the child stops a thread of the parent, and aborts both (seen on an H200).
#include "../check.h"

#include <sys/wait.h>

static int *buf;

static void release(void) {
    cudaFree(buf);
}

static void expect_end(pid_t child) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT(status, 0);
}

static void before_cuda(void) {
    pid_t child = fork();
    if (child == 0) {
        void *memory;
        int failed = cudaSetDevice(0) != cudaSuccess ||
                     cudaMalloc(&memory, 4) != cudaSuccess ||
                     cudaFree(memory) != cudaSuccess;
        _exit(failed);
    }
    expect_end(child);
}

static void asks(void (*leave)(int)) {
    pid_t child = fork();
    if (child == 0) {
        int n = 0, version;
        const char *words = cudaGetErrorString(cudaErrorInitializationError);
        int well = cudaGetDeviceCount(&n) == cudaSuccess && n > 0 && words &&
                   ncclGetVersion(&version) >= 0;
        leave(!well);
    }
    expect_end(child);
}

static void after_nccl(void) {
    asks(_exit);
    pid_t child = fork();
    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    expect_end(child);
}

int main(void) {
    before_cuda();
    start_mpi();
    start_device();
    buf = device_ints(4, 1);
    atexit(release);
    asks(exit);
    start_nccl();
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    after_nccl();
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    finish();
    return 0;
}
