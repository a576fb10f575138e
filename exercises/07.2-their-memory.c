//: kind complete
//: title Into their memory
//: trains IPC handles: open, copy, wait, close
//: ranks 2 3 | 4 7 8
//: starter of their buffer (filled by
//: learned A handle gives a process an address of another's memory; then a copy is an ordinary cudaMemcpyAsync.
//: why Nobody tells the other process that the copy is done, so the sender waits before it returns.
//: hint An address is valid only in its own process. What makes one for this process from a handle? Lesson 07 has it.
//: hint cudaIpcOpenMemHandle gives an address, cudaMemcpyAsync copies to it; and before the others are told, the
//:   copy must have ended.
//: hint float *far; cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess), cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream), cudaStreamSynchronize(stream), cudaIpcCloseMemHandle(far).
//: file

/*
 * `theirs` is the handle of a buffer in a different process, on the same machine. Copy
 * `count` floats from `mine`, which is in the memory of this process's GPU, directly into
 * that buffer. When the function returns, they must be there, because the caller then
 * tells the other process. Leave nothing open.
 */
#include "lesson.h"

void put(const float *mine, cudaIpcMemHandle_t theirs, size_t count,
         cudaStream_t stream) {
    //: starter
    // Yours: about five lines.
    //: solution
    float *far;
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess));
    CHECK_CUDA(cudaMemcpyAsync(far, mine, count * sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    //: wrong elements: of their buffer (filled by
    float *far;
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess));
    CHECK_CUDA(cudaMemcpyAsync(far, mine, count, cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    //: wrong wrong-way: of their buffer (filled by
    float *far;
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess));
    CHECK_CUDA(cudaMemcpyAsync((float *)mine, far, count * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    //: wrong no-wait: NCCL CHECK:
    float *far;
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess));
    CHECK_CUDA(cudaMemcpyAsync(far, mine, count * sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    //: wrong never-closed: NCCL CHECK:
    float *far;
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, theirs, cudaIpcMemLazyEnablePeerAccess));
    CHECK_CUDA(cudaMemcpyAsync(far, mine, count * sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong no-flag: invalid argument
    float *far;
    CHECK_CUDA(cudaIpcOpenMemHandle((void **)&far, theirs, 0));
    CHECK_CUDA(cudaMemcpyAsync(far, mine, count * sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    //: end
}
//: check
void put(const float *mine, cudaIpcMemHandle_t theirs, size_t count, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {6, 1, 1003};
    const int next = (check_rank + 1) % check_nranks;
    const int previous = (check_rank + check_nranks - 1) % check_nranks;
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu floats", count);
        float *host = check_host(bytes), *expected = check_host(bytes);
        float *mine = check_device(bytes), *target = check_device(bytes);
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)check_data(check_rank, i);
            expected[i] = (float)check_data(previous, i);
        }
        check_put(mine, host, bytes);
        check_put(target, memset(check_host(bytes), 0, bytes), bytes);
        cudaIpcMemHandle_t own, all[check_nranks];
        CHECK_CUDA(cudaIpcGetMemHandle(&own, target));
        CHECK_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE,
                                MPI_COMM_WORLD));
        put(mine, all[next], count, check_stream);
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        char name[64];
        snprintf(name, sizeof name, "their buffer (filled by rank %d)", previous);
        check_buffer(name, target, expected, count, ncclFloat32);
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
}
