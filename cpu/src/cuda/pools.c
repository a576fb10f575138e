/*
 * pools.c has the memory pools, and what a program says of managed memory.
 * CUDA Runtime API, "Stream Ordered Memory Allocator", "Memory Management".
 *
 * A pool is a name for its device: memory is taken and given back as without one.
 */
#include "cuda/capture.h"
#include "cuda/device.h"

struct CUmemPoolHandle_st {
    int device;
    bool own; // made by the program
    bool reuse[4];
    enum cudaMemAccessFlags access[MAX_DEVICES]; // beside that of its own
    unsigned long long threshold, high;
};

static struct CUmemPoolHandle_st *first[MAX_DEVICES], *now_used[MAX_DEVICES];

static cudaMemPool_t make_pool(int device, bool own) {
    struct CUmemPoolHandle_st *pool = must_alloc(sizeof *pool);
    *pool = (struct CUmemPoolHandle_st){
        .device = device, .own = own, .reuse = {true, true, true, true}};
    return pool;
}

static cudaError_t give(cudaMemPool_t *out, int device, bool used) {
    cudaError_t error = out ? device_check(device) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return cuda_error(error);
    if (!first[device])
        first[device] = make_pool(device, false);
    *out = used && now_used[device] ? now_used[device] : first[device];
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    CUDA_CALL;
    return give(pool, device, false);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    CUDA_CALL;
    return give(pool, device, true);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    CUDA_CALL;
    if (!pool || device_check(device) != cudaSuccess || pool->device != device)
        return cuda_error(cudaErrorInvalidValue);
    now_used[device] = pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props) {
    CUDA_CALL;
    if (!out || !props || props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice ||
        device_check(props->location.id) != cudaSuccess)
        return cuda_error(cudaErrorInvalidValue);
    *out = make_pool(props->location.id, true);
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    CUDA_CALL;
    if (!pool || !pool->own)
        return cuda_error(cudaErrorInvalidValue);
    if (now_used[pool->device] == pool)
        now_used[pool->device] = NULL;
    free(pool);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    CUDA_CALL;
    if (!pool || !value)
        return cuda_error(cudaErrorInvalidValue);
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        pool->reuse[attribute] = *(int *)value != 0;
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        pool->threshold = *(unsigned long long *)value;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh: // may be set back only
        if (*(unsigned long long *)value != 0)
            return cuda_error(cudaErrorInvalidValue);
        pool->high = 0;
        return cudaSuccess;
    default: return cuda_error(cudaErrorInvalidValue);
    }
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    CUDA_CALL;
    if (!pool || !value)
        return cuda_error(cudaErrorInvalidValue);
    unsigned long long used = memory_used(pool->device);
    pool->high = used > pool->high ? used : pool->high;
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        *(int *)value = pool->reuse[attribute];
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        *(unsigned long long *)value = pool->threshold;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
        *(unsigned long long *)value = used;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        *(unsigned long long *)value = pool->high;
        return cudaSuccess;
    default: return cuda_error(cudaErrorInvalidValue);
    }
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    CUDA_CALL;
    (void)bytes;
    return cuda_error(pool ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t n) {
    CUDA_CALL;
    bool right = pool && (list || n == 0);
    for (size_t i = 0; right && i < n; i++)
        right = list[i].location.type == cudaMemLocationTypeDevice &&
                device_check(list[i].location.id) == cudaSuccess &&
                (list[i].location.id != pool->device ||
                 list[i].flags == cudaMemAccessFlagsProtReadWrite);
    for (size_t i = 0; right && i < n; i++)
        pool->access[list[i].location.id] = list[i].flags;
    return cuda_error(right ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *place) {
    CUDA_CALL;
    if (!flags || !pool || !place || place->type != cudaMemLocationTypeDevice ||
        device_check(place->id) != cudaSuccess)
        return cuda_error(cudaErrorInvalidValue);
    *flags = place->id == pool->device ? cudaMemAccessFlagsProtReadWrite
                                       : pool->access[place->id];
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    CUDA_CALL;
    int before = device_now();
    if (!pool)
        return cuda_error(cudaErrorInvalidValue);
    cudaSetDevice(pool->device);
    cudaError_t error = cudaMallocAsync(pointer, bytes, stream);
    cudaSetDevice(before);
    return error;
}

/* --- Managed memory ---------------------------------------------------------------- */

static cudaError_t check_managed(const void *start, size_t bytes,
                                 struct cudaMemLocation place) {
    const struct memory *memory = bytes > 0 ? memory_range(start, bytes) : NULL;
    if (!memory || memory->kind != MEMORY_MANAGED)
        return cudaErrorInvalidValue;
    return place.type == cudaMemLocationTypeDevice ? device_check(place.id) : cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *start, size_t bytes,
                                 struct cudaMemLocation place, unsigned int flags,
                                 cudaStream_t stream) {
    CUDA_CALL;
    if (flags != 0)
        return cuda_error(cudaErrorInvalidValue);
    if (!stream_of(stream, device_now()))
        return cuda_error(cudaErrorInvalidResourceHandle);
    return cuda_error(check_managed(start, bytes, place));
}

cudaError_t cudaMemAdvise(const void *start, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation place) {
    CUDA_CALL;
    if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
        return cuda_error(cudaErrorInvalidValue);
    return cuda_error(check_managed(start, bytes, place));
}
