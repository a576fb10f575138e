/*
 * alloc.c has the calls that allocate and free memory, and say what a pointer is.
 * CUDA Runtime API, "Memory Management", "Stream Ordered Memory Allocator".
 */
#include "cuda/capture.h"
#include "cuda/device.h"

static cudaError_t allocate(void **pointer, size_t bytes, enum memory_kind kind) {
    if (!pointer)
        return cuda_error(cudaErrorInvalidValue);
    if (capture_forbids())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    if (device_broken(device_now()) != cudaSuccess)
        return cuda_error(device_broken(device_now()));
    return cuda_error(device_allocate(pointer, bytes, kind));
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    CUDA_CALL;
    return allocate(pointer, bytes, MEMORY_DEVICE);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t rows) {
    enum { ALIGNED = 512 }; // bytes
    CUDA_CALL;
    if (!pitch || width > SIZE_MAX - ALIGNED)
        return cuda_error(cudaErrorInvalidValue);
    size_t bytes;
    *pitch = (width + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (__builtin_mul_overflow(*pitch, rows, &bytes))
        return cuda_error(cudaErrorMemoryAllocation);
    return allocate(pointer, bytes, MEMORY_DEVICE);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    CUDA_CALL;
    if (flags & ~7u)
        return cuda_error(cudaErrorInvalidValue);
    return allocate(pointer, bytes, MEMORY_PINNED);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    CUDA_CALL;
    return allocate(pointer, bytes, MEMORY_PINNED);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
    CUDA_CALL;
    if (bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cuda_error(cudaErrorInvalidValue);
    return allocate(pointer, bytes, MEMORY_MANAGED);
}

/* A graph that allocates it at each launch wants the same address again. */
static void give_back(struct memory *memory) {
    if (memory->graphs > 0)
        memory->vacant = true;
    else
        memory_destroy(memory);
}

static cudaError_t release(void *pointer, bool pinned) {
    if (!pointer)
        return cudaSuccess;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || memory->opened || memory->of_nccl ||
        memory->registered || (memory->kind == MEMORY_PINNED) != pinned)
        return cudaErrorInvalidValue;
    if (capture_forbids())
        return cudaErrorStreamCaptureUnsupported;
    // What is under way on the device ends first; pinned memory is every device's.
    int device = memory->device;
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && (pinned || streams[s]->device == device))
            wait_for(stream_end(streams[s]));
    memory = memory_find(pointer); // another thread may have been faster
    if (!memory)
        return cudaErrorInvalidValue;
    give_back(memory);
    return device_broken(device);
}

cudaError_t cudaFree(void *pointer) {
    CUDA_CALL;
    return cuda_error(release(pointer, false));
}

cudaError_t cudaFreeHost(void *pointer) {
    CUDA_CALL;
    return cuda_error(release(pointer, true));
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
    CUDA_CALL;
    if (!pointer || bytes == 0 || (flags & ~15u))
        return cuda_error(cudaErrorInvalidValue);
    if (capture_forbids())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    return cuda_error(memory_register(pointer, bytes, device_now())
                          ? cudaSuccess
                          : cudaErrorHostMemoryAlreadyRegistered);
}

/* Its first byte: "must be the same one passed to cudaHostRegister()" (CUDA Runtime API).
 */
cudaError_t cudaHostUnregister(void *pointer) {
    CUDA_CALL;
    struct memory *memory = memory_find(pointer);
    if (!memory || !memory->registered || memory->user != pointer)
        return cuda_error(cudaErrorHostMemoryNotRegistered);
    if (capture_forbids())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    memory_destroy(memory);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
    CUDA_CALL;
    struct memory *memory = memory_find(host);
    if (!device || flags != 0 || !memory || memory->kind != MEMORY_PINNED)
        return cuda_error(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

struct memory_op {
    struct op op;
    void *pointer;
};

static void *pointer_of(const struct op *op) {
    return ((const struct memory_op *)op)->pointer;
}

/* A captured allocation: the memory is there from the capture on, and new at each launch.
 * CUDA Programming Guide, "Graph Memory Nodes". */
static bool step_allocate(struct op *op) {
    struct memory *memory = memory_find(pointer_of(op));
    if (memory) {
        memory->vacant = false;
        memory_fresh(memory);
    }
    return op->done = true;
}

static void drop_allocation(struct op *op) {
    struct memory *memory = memory_find(pointer_of(op));
    if (memory && memory->graphs > 0 && --memory->graphs == 0 && memory->vacant)
        memory_destroy(memory);
}

static struct op *another_allocation(const struct op *from) {
    struct op *op = op_create(sizeof(struct memory_op), step_allocate);
    struct memory *memory = memory_find(pointer_of(from));
    op->copy = another_allocation;
    op->drop = drop_allocation;
    ((struct memory_op *)op)->pointer = pointer_of(from);
    if (memory)
        memory->graphs++;
    return op;
}

/* The address is known at once. Whether it is used too early is the program's affair. */
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t handle) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    if (!pointer || !stream)
        return cuda_error(pointer ? cudaErrorInvalidResourceHandle
                                  : cudaErrorInvalidValue);
    if (!stream->capture && capture_forbids())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    cudaError_t error = device_allocate(pointer, bytes, MEMORY_DEVICE);
    if (*pointer)
        memory_find(*pointer)->closed = true;
    const struct memory_op of = {.pointer = *pointer};
    if (*pointer && stream->capture)
        op_enqueue(another_allocation(&of.op), stream);
    return cuda_error(error);
}

static bool step_free(struct op *op) {
    struct memory *memory = memory_find(pointer_of(op));
    if (memory)
        give_back(memory);
    return op->done = true;
}

static struct op *another_free(const struct op *from) {
    struct op *op = op_create(sizeof(struct memory_op), step_free);
    op->copy = another_free;
    ((struct memory_op *)op)->pointer = pointer_of(from);
    return op;
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
    CUDA_CALL;
    struct stream *stream = stream_of(handle, device_now());
    if (!stream)
        return cuda_error(cudaErrorInvalidResourceHandle);
    if (!pointer)
        return cudaSuccess;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || memory->opened ||
        memory->kind == MEMORY_PINNED)
        return cuda_error(cudaErrorInvalidValue);
    if (!stream->capture && capture_forbids())
        return cuda_error(cudaErrorStreamCaptureUnsupported);
    const struct memory_op of = {.pointer = pointer};
    op_enqueue(another_free(&of.op), stream);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                     const void *pointer) {
    CUDA_CALL;
    if (!out)
        return cuda_error(cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    struct memory *memory = memory_find(pointer);
    out->device = memory ? memory->device : cudaInvalidDeviceId;
    if (!memory)
        return cudaSuccess;
    static const enum cudaMemoryType types[] = {cudaMemoryTypeDevice, cudaMemoryTypeHost,
                                                cudaMemoryTypeManaged};
    out->type = types[memory->kind];
    out->devicePointer = (void *)(uintptr_t)pointer;
    if (memory->kind != MEMORY_DEVICE)
        out->hostPointer = (void *)(uintptr_t)pointer;
    return cudaSuccess;
}
