//: kind repair
//: title A few too many
//: trains the threads of the last block that have no element
//: ranks 1 2 | 3 4 7 8
//: calls scale=1 ncclAllReduce=1
//: starter kernel scale uses memory that is in no buffer
//: learned Blocks are all of one size, so the last one has threads without an element: they must do nothing.
//: why Only threads with i < count touch the buffer.
//: hint 1024 elements in blocks of 384: how many threads are there?
//: hint Three blocks have 1152 threads. What do the last 128 of them write?
//: hint Before the line that writes: if (i < count)
//: wrong one-more s/i < count/i <= count/: an illegal memory access was encountered
//: wrong one-less s/i < count/i + 1 < count/: of the mean is
//: wrong whole-blocks-only s/\(count \+ THREADS - 1\) \/ THREADS/count \/ THREADS/: of the mean is
//: file

/*
 * The mean of all ranks: a sum, then a kernel that divides. It worked with 768 elements.
 * With 1024 it goes wrong. Repair the kernel.
 */
#include "lesson.h"

enum { THREADS = 384 };

__global__ void scale(float *x, float factor, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    //: starter
    x[i] *= factor;
    //: solution
    if (i < count)
        x[i] *= factor;
    //: end
}

extern "C" void mean(float *x, size_t count, int nranks, ncclComm_t comm,
                     cudaStream_t stream) {
    CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat32, ncclSum, comm, stream));
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    scale<<<blocks, THREADS, 0, stream>>>(x, 1.0f / (float)nranks, count);
    CHECK_CUDA(cudaGetLastError());
}
//: check
void mean(float *x, size_t count, int nranks, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {768, 1024, 4096};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu elements", count);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
            expected[i] *= 1.0f / (float)check_nranks;
        }
        float *x = check_device(bytes);
        check_put(x, mine, bytes);
        mean(x, count, check_nranks, check_comm, check_stream);
        check_buffer("the mean", x, expected, count, ncclFloat32);
    }
}
