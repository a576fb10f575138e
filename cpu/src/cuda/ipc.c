/*
 * ipc.c has the handles of device memory that several processes of a host use. CUDA
 * Runtime API, "Device Management".
 *
 * A handle says which file of which process the bytes lie in (memory.c). A process that
 * opens it maps the same file.
 */
#define _GNU_SOURCE
#include "cuda/device.h"
#include "standin.h"
#include "cuda/queue.h"
#include "base/job.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is in a cudaIpcMemHandle_t. */
struct handle {
    char magic[8];
    uint64_t job, kernel, key;
    uint64_t bytes;
    int32_t world; // rank in MPI_COMM_WORLD
    int32_t process, file;
    uint32_t sum; // of all before it
};
static const char magic[8] = "cpu-ipc";

_Static_assert(sizeof(struct handle) <= sizeof(cudaIpcMemHandle_t), "too large");

static uint64_t hash(const void *data, size_t bytes) {
    uint64_t value = 14695981039346656037u;
    for (const unsigned char *at = data; bytes > 0; bytes--)
        value = (value ^ *at++) * 1099511628211u;
    return value;
}

/* A number that the processes of one running system share, containers apart. */
static uint64_t this_kernel(void) {
    static uint64_t number;
    char text[256] = "";
    FILE *id = number ? NULL : fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = id ? fread(text, 1, 64, id) : 0;
    if (id)
        fclose(id);
    // Processes know each other's numbers only within a namespace.
    ssize_t more =
        number ? 0 : readlink("/proc/self/ns/pid", text + length, sizeof text - length);
    if (!number)
        number = hash(text, length + (size_t)(more > 0 ? more : 0));
    return number;
}

/* What tells files of all processes apart, and one from another that comes after it. */
static uint64_t key_of(int file) {
    struct stat about;
    if (fstat(file, &about) != 0)
        return 0;
    const uint64_t of[] = {about.st_dev, about.st_ino, (uint64_t)about.st_size};
    return hash(of, sizeof of);
}

static uint32_t sum_of(const struct handle *handle) {
    return (uint32_t)hash(handle, offsetof(struct handle, sum));
}

static void fill(cudaIpcMemHandle_t *out, int file, uint64_t bytes) {
    struct handle handle = {.job = job_number(),
                            .kernel = this_kernel(),
                            .key = key_of(file),
                            .bytes = bytes,
                            .world = job_rank,
                            .process = getpid(),
                            .file = file};
    memcpy(handle.magic, magic, sizeof handle.magic);
    handle.sum = sum_of(&handle);
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
}

bool ipc_share(struct memory *memory, cudaIpcMemHandle_t *out) {
    if (!memory->moved && !memory_share(memory))
        return false;
    fill(out, memory->file, memory->bytes);
    return true;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer) {
    CUDA_CALL;
    struct memory *memory = memory_find(pointer);
    if (!out || !memory || memory->kind != MEMORY_DEVICE || memory->closed ||
        memory->opened)
        return cuda_error(cudaErrorInvalidValue);
    return ipc_share(memory, out) ? cudaSuccess : cuda_error(cudaErrorMemoryAllocation);
}

/* The file that the handle tells of, still the one it was; -1: not there, or not here. */
static int open_file(const struct handle *handle) {
    bool here = handle->job == job_number() ? job_same_host(handle->world)
                                            : handle->kernel == this_kernel();
    if (!here)
        return -1;
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/fd/%d", handle->process, handle->file);
    int file = open(name, O_RDWR | O_CLOEXEC);
    if (file >= 0 && key_of(file) != handle->key) {
        close(file);
        file = -1;
    }
    return file;
}

/* What is in the handle, and the file that it tells of. */
static cudaError_t read_handle(const cudaIpcMemHandle_t *given, struct handle *handle,
                               int *file) {
    memcpy(handle, given, sizeof *handle);
    cudaError_t error = device_check(device_now());
    if (error != cudaSuccess)
        return error;
    if (memcmp(handle->magic, magic, sizeof handle->magic) != 0 ||
        handle->sum != sum_of(handle))
        return cudaErrorInvalidValue;
    if (handle->process == getpid() && handle->kernel == this_kernel())
        return cudaErrorDeviceUninitialized;
    *file = open_file(handle);
    return *file < 0 ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t ipc_open(const cudaIpcMemHandle_t *given, int device, struct memory **out) {
    struct handle handle;
    int file;
    cudaError_t error = read_handle(given, &handle, &file);
    if (error != cudaSuccess)
        return error;
    *out = memory_opened(handle.key, device);
    if (*out)
        (*out)->opened++;
    else
        *out = memory_open(file, handle.bytes, device, handle.key);
    close(file);
    return *out ? cudaSuccess : cudaErrorMapBufferObjectFailed;
}

void ipc_close(struct memory *memory) {
    if (memory->opened > 1)
        memory->opened--;
    else
        memory_destroy(memory);
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t given,
                                 unsigned int flags) {
    CUDA_CALL;
    struct memory *memory;
    cudaError_t error = cudaErrorInvalidValue;
    if (out && flags == cudaIpcMemLazyEnablePeerAccess)
        error = ipc_open(&given, device_now(), &memory);
    if (error != cudaSuccess)
        return cuda_error(error);
    *out = memory->user;
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
    CUDA_CALL;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || !memory->opened)
        return cuda_error(cudaErrorInvalidValue);
    if (memory->opened > 1) {
        memory->opened--;
        return cudaSuccess;
    }
    int device = memory->device;
    device_wait(device);           // what is under way there ends first
    memory = memory_find(pointer); // another thread may have been faster
    if (!memory)
        return cuda_error(cudaErrorInvalidValue);
    ipc_close(memory);
    return cuda_error(device_broken(device));
}

size_t standin_opened_bytes(const void *pointer) {
    LOCKED;
    const struct memory *memory = memory_find(pointer);
    return memory && memory->opened && memory->user == pointer ? memory->bytes : 0;
}
