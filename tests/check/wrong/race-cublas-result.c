// A norm is left on the device, and another stream adds it up over all ranks without
// waiting for it. On a GPU the sum is of what was there before.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: two streams use one buffer with no event between
//
// expect: rank @any on @host: ncclAllReduce(count 1, ncclFloat32, ncclSum) at @allreduce
//     reads what
//
// expect: cublasSnrm2 at @norm writes
#include "../check.h"

#include <cublas_v2.h>

int main(void) {
    start();
    cudaStream_t other = new_stream();
    cudaEvent_t there;
    cublasHandle_t blas;
    float host[] = {3, 4}, *x, *norm;
    MUST(cudaMalloc((void **)&x, sizeof host));
    MUST(cudaMalloc((void **)&norm, sizeof *norm));
    MUST(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    MUST(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    MUST(cublasSnrm2(blas, 2, x, 1, norm)); // @norm
#ifdef FIXED
    MUST(cudaEventRecord(there, stream));
    MUST(cudaStreamWaitEvent(other, there, 0));
#endif
    MUST(ncclAllReduce(norm, norm, 1, ncclFloat32, ncclSum, comm, other)); // @allreduce
    MUST(cudaMemcpyAsync(host, norm, sizeof *norm, cudaMemcpyDeviceToHost, other));
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(host[0], 5 * nranks);
    MUST(cublasDestroy(blas));
    MUST(cudaEventDestroy(there));
    MUST(cudaFree(x));
    MUST(cudaFree(norm));
    MUST(cudaStreamDestroy(other));
    finish();
    return 0;
}
