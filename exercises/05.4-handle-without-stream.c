//: kind repair
//: title One rank's numbers are missing
//: trains the stream in which cuBLAS works
//: ranks 2 3 | 1 4 7 8
//: starter NCCL CHECK: race:
//: learned A library's handle has a stream of its own: give it yours, and its work takes its place in the order.
//: why In the same stream the addition begins when the chunk has come, and the send when the addition is done.
//: hint The report names two operations that use `sum` at the same time. In which stream is each?
//: hint The calls of NCCL get `stream`. cuBLAS works in a stream of its own, which cublasSetStream sets; if nobody does,
//:   it's the default stream. If the host waits before the addition, the send still doesn't wait for the addition.
//: hint cublasSetStream(blas, stream), before the addition.
//: file

/*
 * "The sum goes from rank to rank: each adds its own numbers and passes it on. The last
 * rank should have the sum of all. Mostly it has. Sometimes the numbers of one rank are
 * missing."
 *
 * Repair it. `blas` was made by cublasCreate, and nothing else was done with it.
 */
#include "lesson.h"
#include <cublas_v2.h>

void sum_along(const float *mine, float *sum, size_t count, int rank, int nranks,
               cublasHandle_t blas, ncclComm_t comm, cudaStream_t stream) {
    const float one = 1;
    const size_t bytes = count * sizeof(float);
    //: starter
    if (rank == 0) {
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, mine, 1, sum, 1)); // sum += mine
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    //: solution
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    if (rank == 0) {
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, mine, 1, sum, 1)); // sum += mine
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    //: wrong wait-before: NCCL CHECK: race:
    if (rank == 0) {
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, mine, 1, sum, 1));
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    //: wrong wait-at-the-end: NCCL CHECK: race:
    if (rank == 0) {
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, mine, 1, sum, 1));
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    CHECK_CUDA(cudaDeviceSynchronize());
    //: wrong set-too-late: NCCL CHECK: race:
    if (rank == 0) {
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    } else {
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
        CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, mine, 1, sum, 1));
        CHECK_CUBLAS(cublasSetStream(blas, stream));
    }
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    //: wrong not-added: This lacks this rank's own numbers
    if (rank == 0)
        CHECK_CUDA(cudaMemcpyAsync(sum, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    else
        CHECK_NCCL(ncclRecv(sum, count, ncclFloat32, rank - 1, comm, stream));
    if (rank + 1 < nranks)
        CHECK_NCCL(ncclSend(sum, count, ncclFloat32, rank + 1, comm, stream));
    (void)one, (void)blas;
    //: end
}
//: check
#include <cublas_v2.h>

void sum_along(const float *mine, float *sum, size_t count, int rank, int nranks,
               cublasHandle_t blas, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {4, 1, 501};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu elements", count);
        float *host = check_host(bytes), *expected = check_host(bytes);
        float *lacks = check_host(bytes);
        float *mine = check_device(bytes), *sum = check_device(bytes);
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r <= check_rank; r++)
                expected[i] += (float)check_data(r, i);
            lacks[i] = expected[i] - host[i];
        }
        check_put(mine, host, bytes);
        cublasHandle_t blas;
        CHECK_CUBLAS(cublasCreate(&blas));
        sum_along(mine, sum, count, check_rank, check_nranks, blas, check_comm,
                  check_stream);
        check_mistake("This lacks this rank's own numbers.", lacks);
        check_buffer("sum", sum, expected, count, ncclFloat32);
        CHECK_CUBLAS(cublasDestroy(blas));
    }
}
