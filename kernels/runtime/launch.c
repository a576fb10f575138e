/*
 * launch.c: a launch is an operation on its stream, and is carried out as every other
 * one. CUDA Runtime API, "Execution Control"; CUDA Programming Guide, "Technical
 * Specifications per Compute Capability".
 */
#include "kernels.h"

#include "cuda/capture.h"

struct kernel_op {
    struct op op;
    struct launch launch;
    int device;
    void *at[]; // of each argument; then the arguments
};

static bool step(struct op *op) {
    struct kernel_op *mine = (struct kernel_op *)op;
    enum kernel_end end = kernel_run(&mine->launch);
    if (end == KERNEL_BROKE)
        device_break(mine->device, cudaErrorIllegalAddress);
    return op->done = end != KERNEL_RESTS;
}

static void drop(struct op *op) {
    kernel_forget(&((struct kernel_op *)op)->launch);
}

static struct op *launch_op(const struct launch *launch, int device);

static struct op *copy(const struct op *op) {
    const struct kernel_op *from = (const struct kernel_op *)op;
    struct op *to = launch_op(&from->launch, from->device);
    to->cost = op->cost;
    return to;
}

/* What a kernel does is not known: by the modelled clock each thread uses four bytes of
 * each pointer, or CPU_KERNEL_BYTES in all. */
static struct cost cost_of(const struct launch *launch) {
    const char *set = getenv("CPU_KERNEL_BYTES");
    const dim3 *g = &launch->grid, *b = &launch->block;
    double threads = (double)g->x * g->y * g->z * b->x * b->y * b->z, bytes = 0;
    for (const char *use = launch->kernel->code->uses; *use; use++)
        bytes += strchr("rw", *use) ? sizeof(float) : 0;
    return clock_compute(0, threads * (set ? atof(set) : bytes), 0);
}

/* Arguments are taken when the call is made. */
static struct op *launch_op(const struct launch *launch, int device) {
    const struct kernel_code *code = launch->kernel->code;
    size_t bytes = 0;
    for (unsigned i = 0; i < code->narguments; i++)
        bytes += (code->sizes[i] + 15) / 16 * 16;
    size_t head =
        (sizeof(struct kernel_op) + code->narguments * sizeof(void *) + 15) / 16 * 16;
    struct op *op = op_create(head + bytes, step);
    struct kernel_op *mine = (struct kernel_op *)op;
    char *room = (char *)op + head;
    mine->launch = *launch;
    mine->launch.arguments = mine->at;
    mine->device = device;
    for (unsigned i = 0; i < code->narguments; i++) {
        mine->at[i] = memcpy(room, launch->arguments[i], code->sizes[i]);
        room += (code->sizes[i] + 15) / 16 * 16;
    }
    op->copy = copy;
    op->drop = drop;
    op->cost = cost_of(launch);
    return op;
}

enum { MOST_THREADS = 1024, MOST_SHARED = 227 << 10, MOST_BLOCKS = 65535 };

/* The errors are what CUDA 13.0 said on an H200. The manual, and older versions, have
 * cudaErrorInvalidDeviceFunction and cudaErrorInvalidConfiguration. */
static cudaError_t possible(const struct kernel *kernel, dim3 grid, dim3 block,
                            size_t shared) {
    if (!kernel)
        return cudaErrorInvalidResourceHandle;
    const bool fits =
        grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 &&
        block.z > 0 && grid.x <= INT32_MAX && grid.y <= MOST_BLOCKS &&
        grid.z <= MOST_BLOCKS && block.x <= MOST_THREADS && block.y <= MOST_THREADS &&
        block.z <= 64 && (uint64_t)block.x * block.y * block.z <= MOST_THREADS;
    return fits && shared <= kernel->dynamic ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t queue(const void *function, dim3 grid, dim3 block, void **arguments,
                         size_t shared, cudaStream_t handle) {
    struct stream *stream = stream_of(handle, device_now());
    struct kernel *kernel = kernel_of(function);
    cudaError_t error = stream_in_use(stream);
    if (error == cudaSuccess)
        error = possible(kernel, grid, block, shared);
    if (error != cudaSuccess)
        return cuda_error(error);
    const struct launch launch = {kernel, grid, block, shared, arguments};
    op_enqueue(launch_op(&launch, stream->device), stream);
    return cudaSuccess;
}

/* The headers of C programs do not declare these. */
typedef struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    const void *attributes;
    unsigned nattributes;
} configuration;
struct attributes {
    size_t shared, constant, local;
    int threads, registers, ptx, binary, cache, dynamic, carveout;
};

#pragma GCC visibility push(default)

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       cudaStream_t *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *stream = pushed.stream;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                             void **arguments, size_t shared, cudaStream_t stream) {
    CUDA_CALL;
    return queue(function, grid, block, arguments, shared, stream);
}

/* Blocks of a grid can't wait for each other: device.pl has refused those that do. */
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared,
                                        cudaStream_t stream) {
    CUDA_CALL;
    return queue(function, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const configuration *c, const void *function,
                                void **arguments) {
    CUDA_CALL;
    if (!c)
        return cuda_error(cudaErrorInvalidValue);
    return queue(function, c->grid, c->block, arguments, c->shared, c->stream);
}

enum { ATTRIBUTE_DYNAMIC_SHARED = 8, ATTRIBUTE_CARVEOUT = 9 };

cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value) {
    CUDA_CALL;
    struct kernel *kernel = kernel_of(function);
    if (!kernel)
        return cuda_error(cudaErrorInvalidDeviceFunction);
    if (attribute == ATTRIBUTE_CARVEOUT)
        return cudaSuccess;
    if (attribute != ATTRIBUTE_DYNAMIC_SHARED || value < 0 ||
        (size_t)value + kernel->code->shared > MOST_SHARED)
        return cuda_error(cudaErrorInvalidValue);
    kernel->dynamic = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct attributes *out, const void *function) {
    CUDA_CALL;
    const struct kernel *kernel = kernel_of(function);
    if (!out || !kernel)
        return cuda_error(out ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue);
    *out = (struct attributes){.shared = kernel->code->shared,
                               .threads = MOST_THREADS,
                               .registers = 32,
                               .ptx = 80,
                               .binary = 80,
                               .dynamic = (int)kernel->dynamic};
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache cache) {
    CUDA_CALL;
    (void)cache;
    return cuda_error(kernel_of(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *function, int size,
                                                          size_t shared) {
    CUDA_CALL;
    const struct kernel *kernel = kernel_of(function);
    if (!kernel || !blocks || size <= 0)
        return cuda_error(kernel ? cudaErrorInvalidValue
                                 : cudaErrorInvalidDeviceFunction);
    size_t each = shared + kernel->code->shared;
    int by_threads = size > MOST_THREADS ? 0 : 2 * MOST_THREADS / size;
    int by_shared = each ? (int)(MOST_SHARED / each) : 32;
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    if (*blocks > 32)
        *blocks = 32;
    return cudaSuccess;
}

#pragma GCC visibility pop
