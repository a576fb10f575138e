/*
 * cuda_memory.c: memory of CUDA, made and freed. What is made is awaited when it is
 * there; what is freed, before: as soon as it is free below, another thread may be given
 * the same address.
 */
#include "cuda_front.h"

#include "nccl_comms.h"
#include "pages.h"
#include "nccl_registered.h"

/* How often besides the first time cudaIpcOpenMemHandle has given out an address. */
static struct map opened;

static void opened_again(const void *pointer, intptr_t more) {
    table_put(&opened, pointer, (void *)((intptr_t)table_get(&opened, pointer) + more));
}

/* `stream` NULL: in none. */
static cudaError_t made(cudaError_t error, void **pointer, size_t bytes,
                        enum judge_memory_kind kind, const cudaStream_t *stream,
                        struct judge_at at) {
    if (error != cudaSuccess || !*pointer || bytes == 0)
        return answer(error, at);
    if (timeline_on && !stream)
        timeline_device();
    int number = -1, device = current_device();
    struct judge *j = stream ? front_in_stream(*stream, -1, &number) : front_in();
    if (kind == JUDGE_PINNED || kind == JUDGE_MANAGED)
        pages_made(*pointer, bytes);
    judge_memory_made(j, *pointer, bytes, kind, device, number, at);
    front_out();
    return error;
}

cudaError_t cuda_made(cudaError_t error, void **pointer, size_t bytes,
                      enum judge_memory_kind kind, struct judge_at at) {
    nccl_may_be_hidden();
    return made(error, pointer, bytes, kind, NULL, at);
}

/* Whether an allocation of one of these kinds starts there: a call that is for others
 * fails, and nothing is gone. */
enum {
    FREED = 1 << JUDGE_DEVICE | 1 << JUDGE_POOL | 1 << JUDGE_MANAGED, // by cudaFree
    OF_HOST = 1 << JUDGE_PINNED,
    OF_PROGRAM = 1 << JUDGE_HOST_REGISTERED,
    OPENED = 1 << JUDGE_PEER
};
static bool known(struct judge *j, const void *pointer, int kinds,
                  struct judge_memory *memory) {
    return judge_memory_find(j, pointer, memory) && memory->start == pointer &&
           kinds >> memory->kind & 1;
}

static void forget(struct judge *j, const void *pointer, int stream, struct judge_at at) {
    pages_gone(pointer);
    registered_freed(j, pointer, at);
    judge_memory_freed(j, pointer, stream, at);
    table_put(&opened, pointer, NULL);
}

static cudaError_t release(cudaError_t (*below)(void *), void *pointer, int kinds,
                           bool waits, struct judge_at at) {
    struct judge_memory memory;
    size_t behind = OVER_STANDIN ? STANDIN(written_behind)(pointer) : 0;
    struct judge *j = front_in();
    if (!known(j, pointer, kinds, &memory)) {
        front_out();
        return answer(CALL(below, pointer), at);
    }
    if (behind)
        judge_memory_overrun(j, pointer, behind, at);
    forget(j, pointer, -1, at);
    bool awaited = !group_is_open(); // it does not wait for what a group still holds back
    if (awaited)
        judge_wait_device(j, memory.device, at);
    front_out();
    struct timeline_wait wait = {.at = at,
                                 .on_device = true,
                                 .may_return_at_once = true,
                                 .device = memory.device,
                                 .world = -1};
    cudaError_t error =
        awaited && waits ? HOST_WAITS(&wait, CALL(below, pointer)) : CALL(below, pointer);
    return awaited ? wait_over(error, waits, at) : answer(error, at);
}

cudaError_t cudaFree(void *pointer) {
    ENTER(cudaFree, pointer);
    return release(BELOW(cudaFree), pointer, FREED, true, at);
}

cudaError_t cudaFreeHost(void *pointer) {
    ENTER(cudaFreeHost, pointer);
    return release(BELOW(cudaFreeHost), pointer, OF_HOST, false, at);
}

static cudaError_t malloc_async(void **pointer, size_t bytes, cudaStream_t stream,
                                struct judge_at at) {
    return made(CALL(BELOW(cudaMallocAsync), pointer, bytes, stream), pointer, bytes,
                JUDGE_POOL, &stream, at);
}
ON_STREAM(cudaMallocAsync, malloc_async,
          (void **pointer, size_t bytes, cudaStream_t stream), pointer, bytes, stream)

static cudaError_t free_async(void *pointer, cudaStream_t stream, struct judge_at at) {
    struct judge_memory memory;
    int number;
    struct judge *j = front_in_stream(stream, -1, &number);
    if (number >= 0 && known(j, pointer, FREED, &memory))
        forget(j, pointer, number, at);
    front_out();
    return answer(CALL(BELOW(cudaFreeAsync), pointer, stream), at);
}
ON_STREAM(cudaFreeAsync, free_async, (void *pointer, cudaStream_t stream), pointer,
          stream)

#if !OVER_STANDIN || defined(CUDA_IPC_HANDLE_SIZE)
/* Other processes may write there. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
    ENTER(cudaIpcGetMemHandle, handle, pointer);
    const cudaError_t error = CALL(BELOW(cudaIpcGetMemHandle), handle, pointer);
    if (error == cudaSuccess)
        TELL(judge_memory_open, pointer);
    return answer(error, at);
}

/* How large another process's allocation is, the driver knows. */
static size_t bytes_at(const void *pointer) {
    if (OVER_STANDIN)
        return STANDIN(opened_bytes)(pointer);
    int (*range)(void **, size_t *, uintptr_t) = front_find("cuMemGetAddressRange_v2");
    void *start = NULL;
    size_t bytes = 0;
    return range && CALL(range, &start, &bytes, (uintptr_t)pointer) == 0 &&
                   start == pointer
               ? bytes
               : 0;
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle,
                                 unsigned int flags) {
    ENTER(cudaIpcOpenMemHandle, pointer, handle, flags);
    cudaError_t error = CALL(BELOW(cudaIpcOpenMemHandle), pointer, handle, flags);
    size_t bytes = error == cudaSuccess ? bytes_at(*pointer) : 0;
    struct judge_memory memory;
    struct judge *j = front_in();
    bool again = error == cudaSuccess && known(j, *pointer, OPENED, &memory);
    if (again)
        opened_again(*pointer, 1);
    front_out();
    return again ? error : cuda_made(error, pointer, bytes, JUDGE_PEER, at);
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
    ENTER(cudaIpcCloseMemHandle, pointer);
    struct judge_memory memory;
    bool stays =
        known(front_in(), pointer, OPENED, &memory) && table_get(&opened, pointer);
    if (stays)
        opened_again(pointer, -1);
    front_out();
    return stays ? answer(CALL(BELOW(cudaIpcCloseMemHandle), pointer), at)
                 : release(BELOW(cudaIpcCloseMemHandle), pointer, OPENED, false, at);
}
#endif

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    ENTER(cudaMallocPitch, pointer, pitch, width, height);
    cudaError_t error = CALL(BELOW(cudaMallocPitch), pointer, pitch, width, height);
    return cuda_made(error, pointer, error == cudaSuccess ? *pitch * height : 0,
                     JUDGE_DEVICE, at);
}

/* Its first and its last page have other bytes of the program's, too: none is closed. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
    ENTER(cudaHostRegister, pointer, bytes, flags);
    return cuda_made(CALL(BELOW(cudaHostRegister), pointer, bytes, flags), &pointer,
                     bytes, JUDGE_HOST_REGISTERED, at);
}

cudaError_t cudaHostUnregister(void *pointer) {
    ENTER(cudaHostUnregister, pointer);
    return release(BELOW(cudaHostUnregister), pointer, OF_PROGRAM, false, at);
}

#if !OVER_STANDIN
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent) {
    ENTER(cudaMalloc3D, out, extent);
    cudaError_t error = CALL(BELOW(cudaMalloc3D), out, extent);
    if (error != cudaSuccess)
        return answer(error, at);
    return cuda_made(error, &out->ptr, out->pitch * extent.height * extent.depth,
                     JUDGE_DEVICE, at);
}

static cudaError_t malloc_from_pool(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, struct judge_at at) {
    return made(CALL(BELOW(cudaMallocFromPoolAsync), pointer, bytes, pool, stream),
                pointer, bytes, JUDGE_POOL, &stream, at);
}
ON_STREAM(cudaMallocFromPoolAsync, malloc_from_pool,
          (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
          pointer, bytes, pool, stream)

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data,
                                     void *pointer) {
    ENTER(cudaMemPoolExportPointer, data, pointer);
    const cudaError_t error = CALL(BELOW(cudaMemPoolExportPointer), data, pointer);
    if (error == cudaSuccess)
        TELL(judge_memory_open, pointer);
    return answer(error, at);
}
#endif

void allocations_reset(struct judge *j, int device, struct judge_at at) {
    const void *start;
    while ((start = judge_memory_on(j, device)))
        forget(j, start, -1, at);
}
