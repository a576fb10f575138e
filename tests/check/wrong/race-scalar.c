// A mean by a factor that lies on the device. It is read "while the collective is
// running" (nccl.h, ncclScalarDevice), and the factor for the next step is copied over it
// before.
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: rank 1 on @host: cudaMemcpyAsync at @next writes what
// expect: ncclAllReduce(count 4, ncclFloat32, a PreMulSum) at @sum reads, and nothing
//     makes one wait for the other
// expect: the buffer: 4 bytes of device memory made at @made
#include "../check.h"

int main(void) {
    start();
    float *buf, *factor, mean = 1.0f / nranks, next = 0.25f;
    ncclRedOp_t op;
    cudaStream_t copies = new_stream();
    MUST(cudaMalloc((void **)&buf, 4 * sizeof *buf));
    MUST(cudaMalloc((void **)&factor, sizeof *factor)); // @made
    MUST(cudaMemsetAsync(buf, 0, 4 * sizeof *buf, stream));
    MUST(cudaMemcpyAsync(factor, &mean, sizeof mean, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclRedOpCreatePreMulSum(&op, factor, ncclFloat32, ncclScalarDevice, comm));
    MUST(ncclAllReduce(buf, buf, 4, ncclFloat32, op, comm, stream)); // @sum
#ifndef FIXED
    if (rank == 1) {
        MUST(cudaMemcpyAsync(factor, &next, sizeof next, cudaMemcpyHostToDevice, // @next
                             copies));
    }
#endif
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpyAsync(factor, &next, sizeof next, cudaMemcpyHostToDevice, copies));
    MUST(cudaStreamSynchronize(copies));
    MUST(ncclRedOpDestroy(op, comm));
    MUST(cudaStreamDestroy(copies));
    MUST(cudaFree(factor));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
