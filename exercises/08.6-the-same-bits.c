//: kind complete
//: title The same bits on any number of ranks
//: trains a sum whose order of additions you choose
//: ranks 2 | 1 4 8
//: calls ncclAllGather=1
//: only ncclAllGather
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of sum is …, expected
//: wrong ring-order s/s = 1; s < SAMPLES; s\+\+/s = SAMPLES - 1; s > 0; s--/: of sum is
//: wrong not-the-first s/s = 1; s < SAMPLES/s = 2; s < SAMPLES/: of sum is
//: learned If every rank adds the same numbers in the same order, the sum has the same bits on any number of ranks.
//: why The gradients are gathered unchanged, and then added in the order of the samples, whoever computed them.
//: hint An all-reduce adds what the ranks give it, in an order that depends on their number. Can you get the numbers without an addition?
//: hint ncclAllGather puts the ranks' parts one after the other, so the samples lie in order in `all`.
//: hint ncclAllGather(mine, all, count * SAMPLES / nranks, …). Then copy row 0 of `all` to `sum`, and add the rows 1 to 7 one
//:   after the other.
//: file

/*
 * "With eight GPUs the loss differs from that with four, in the last digits." Eight
 * samples are divided among 1, 2, 4 or 8 ranks. Make the sum of their gradients have the
 * same bits on any number of ranks: sample 0 plus sample 1, plus sample 2, and so on.
 *
 * `mine` has the gradients of this rank's SAMPLES / nranks samples, `count` floats each:
 * those of rank 0 are the first samples. `all` has room for all eight, and `sum` gets the
 * result. Don't wait: the caller does.
 */
#include "lesson.h"

enum { SAMPLES = 8 };

/* Queues sum[i] += other[i] on the stream; it is there. */
void add(float *sum, const float *other, size_t count, cudaStream_t stream);

void total(const float *mine, float *all, float *sum, size_t count, int nranks,
           ncclComm_t comm, cudaStream_t stream) {
    //: starter
    CHECK_CUDA(cudaMemcpyAsync(sum, mine, count * sizeof *sum, cudaMemcpyDeviceToDevice,
                               stream));
    for (size_t s = 1; s < (size_t)(SAMPLES / nranks); s++)
        add(sum, mine + s * count, count, stream);
    CHECK_NCCL(ncclAllReduce(sum, sum, count, ncclFloat32, ncclSum, comm, stream));
    //: solution
    CHECK_NCCL(ncclAllGather(mine, all, count * (size_t)(SAMPLES / nranks), ncclFloat32,
                             comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(sum, all, count * sizeof *sum, cudaMemcpyDeviceToDevice, stream));
    for (size_t s = 1; s < SAMPLES; s++)
        add(sum, all + s * count, count, stream);
    //: wrong ranks-first: of sum is
    const size_t each = SAMPLES / (size_t)nranks;
    float *parts = all + (SAMPLES - 1) * count;
    CHECK_CUDA(cudaMemcpyAsync(parts, mine, count * sizeof *sum, cudaMemcpyDeviceToDevice,
                               stream));
    for (size_t s = 1; s < each; s++)
        add(parts, mine + s * count, count, stream);
    CHECK_CUDA(cudaMemcpyAsync(sum, parts, count * sizeof *sum, cudaMemcpyDeviceToDevice,
                               stream));
    CHECK_NCCL(ncclAllGather(sum, all, count, ncclFloat32, comm, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(sum, all, count * sizeof *sum, cudaMemcpyDeviceToDevice, stream));
    for (size_t r = 1; r < (size_t)nranks; r++)
        add(sum, all + r * count, count, stream);
    //: end
}
//: check
#include <cublas_v2.h>

enum { ALL_SAMPLES = 8 };
void add(float *sum, const float *other, size_t count, cudaStream_t stream);
void total(const float *mine, float *all, float *sum, size_t count, int nranks,
           ncclComm_t comm, cudaStream_t stream);

static cublasHandle_t blas;

void add(float *sum, const float *other, size_t count, cudaStream_t stream) {
    const float one = 1;
    CHECK_CUBLAS(cublasSetStream(blas, stream));
    CHECK_CUBLAS(cublasSaxpy(blas, (int)count, &one, other, 1, sum, 1));
}

/* A large number for one of the samples, and ones for the others: which ones are lost
 * depends on what they are added to. */
static float gradient(size_t sample, size_t i) {
    return sample == i % ALL_SAMPLES ? 16777216 : 1;
}

void check(void) {
    const size_t counts[] = {8, 1, 1001}, each = ALL_SAMPLES / (size_t)check_nranks;
    CHECK_CUBLAS(cublasCreate(&blas));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("count %zu", count);
        float *mine = check_device(each * bytes), *all = check_device(8 * bytes);
        float *sum = check_device(bytes);
        float *host = check_host(each * bytes), *expected = check_host(bytes);
        for (size_t s = 0; s < each; s++)
            for (size_t i = 0; i < count; i++)
                host[s * count + i] = gradient((size_t)check_rank * each + s, i);
        for (size_t i = 0; i < count; i++) {
            expected[i] = gradient(0, i);
            for (size_t s = 1; s < ALL_SAMPLES; s++)
                expected[i] += gradient(s, i);
        }
        check_put(mine, host, each * bytes);
        total(mine, all, sum, count, check_nranks, check_comm, check_stream);
        check_buffer("sum", sum, expected, count, ncclFloat32);
    }
    CHECK_CUBLAS(cublasDestroy(blas));
}
