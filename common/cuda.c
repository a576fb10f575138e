/*
 * CUDA in one page: one GPU's memory, a stream, two events, a wait.
 *
 *     ./cuda
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

/* Every call returns a code. A program that ignores it does not notice a failure. */
static void must(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "CUDA says: %s\n", cudaGetErrorString(error));
    exit(1);
}

int main(void) {
    // Two buffers on the host: ordinary memory.
    enum { COUNT = 1000000 };
    const size_t bytes = COUNT * sizeof(int);
    int *host = malloc(bytes), *back = calloc(COUNT, sizeof(int));
    if (!host || !back)
        return 1;
    for (int i = 0; i < COUNT; i++)
        host[i] = i;

    // Two buffers on the GPU. The host only stores and passes on their addresses.
    int *source, *target;
    must(cudaMalloc((void **)&source, bytes));
    must(cudaMalloc((void **)&target, bytes));

    cudaStream_t stream;
    cudaEvent_t begin, end;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));

    // Four pieces of work for the queue. Each call returns at once.
    must(cudaMemcpyAsync(source, host, bytes, cudaMemcpyHostToDevice, stream));
    must(cudaEventRecord(begin, stream));
    must(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
    must(cudaEventRecord(end, stream));

    // The host has run ahead. Here it waits until the queue is empty.
    must(cudaStreamSynchronize(stream));

    float milliseconds;
    must(cudaEventElapsedTime(&milliseconds, begin, end));
    must(cudaMemcpy(back, target, bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += back[i] != host[i];
    printf("%d elements copied within the GPU in %.3f ms, %d wrong\n", COUNT,
           milliseconds, wrong);

    must(cudaEventDestroy(end));
    must(cudaEventDestroy(begin));
    must(cudaStreamDestroy(stream));
    must(cudaFree(target));
    must(cudaFree(source));
    free(back);
    free(host);
    return wrong > 0;
}
