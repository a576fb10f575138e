/*
 * ipc.c: device memory that several processes of a host use.
 *
 * Memory is a process's own until it asks for a handle. Then its bytes move into a file
 * without a name, which stays mapped where they were; the handle says which file of which
 * process that is. Who opens it maps the same file.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is in a cudaIpcMemHandle_t. */
struct handle {
    char magic[8];
    uint64_t job; // of MPI; 0: the process has not started it
    uint64_t kernel, key;
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

/* Moves the bytes into a file. Their address stays, so what is under way is not
 * disturbed: whoever reads them meanwhile finds them here or there. */
static cudaError_t share(struct memory *memory) {
    int file = memfd_create("nccl-cpu", MFD_CLOEXEC);
    bool moved = file >= 0 && ftruncate(file, (off_t)memory->mapped) == 0;
    for (size_t at = 0; moved && at < memory->mapped;) {
        ssize_t written =
            pwrite(file, memory->shadow + at, memory->mapped - at, (off_t)at);
        moved = written > 0;
        at += (size_t)(written > 0 ? written : 0);
    }
    if (!moved || mmap(memory->shadow, memory->mapped, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        if (file >= 0)
            close(file);
        return cudaErrorMemoryAllocation;
    }
    madvise(memory->shadow, memory->mapped, MADV_HUGEPAGE);
    memory->file = file;
    return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer) {
    PUBLIC_CALL;
    struct memory *memory = memory_find(pointer);
    if (!out || !memory || memory->kind != MEMORY_DEVICE || memory->opened)
        return cuda_error(cudaErrorInvalidValue);
    cudaError_t error = memory->file < 0 ? share(memory) : cudaSuccess;
    if (error != cudaSuccess)
        return cuda_error(error);
    struct handle handle = {.job = library.job,
                            .kernel = this_kernel(),
                            .key = key_of(memory->file),
                            .bytes = memory->bytes,
                            .world = library.world,
                            .process = getpid(),
                            .file = memory->file};
    memcpy(handle.magic, magic, sizeof magic);
    handle.sum = sum_of(&handle);
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
    return cudaSuccess;
}

/* The file that the handle tells of, still the one it was; -1: not there, or not here. */
static int open_file(const struct handle *handle) {
    bool elsewhere = library.mpi && handle->job == library.job
                         ? !on_this_host(handle->world)
                         : handle->kernel != this_kernel();
    if (elsewhere)
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

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t given,
                                 unsigned int flags) {
    PUBLIC_CALL;
    struct handle handle;
    memcpy(&handle, &given, sizeof handle);
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess)
        return error;
    if (!out || flags != cudaIpcMemLazyEnablePeerAccess ||
        memcmp(handle.magic, magic, sizeof magic) != 0 || handle.sum != sum_of(&handle))
        return cuda_error(cudaErrorInvalidValue);
    if (handle.process == getpid() && handle.kernel == this_kernel())
        return cuda_error(cudaErrorDeviceUninitialized);
    int file = open_file(&handle);
    if (file < 0)
        return cuda_error(cudaErrorInvalidValue);
    for (size_t i = 0; i < memory_count(); i++) {
        struct memory *memory = memory_at(i);
        if (memory->opened && memory->key == handle.key && memory->device == device) {
            close(file);
            memory->opened++;
            *out = memory->user;
            return cudaSuccess;
        }
    }
    char *user = mmap(NULL, handle.bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *inner = mmap(NULL, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (user == MAP_FAILED || inner == MAP_FAILED) {
        if (user != MAP_FAILED)
            munmap(user, handle.bytes);
        if (inner != MAP_FAILED)
            munmap(inner, handle.bytes);
        return cuda_error(cudaErrorMapBufferObjectFailed);
    }
    struct memory *memory =
        memory_enter(user, inner, handle.bytes, MEMORY_DEVICE, device, CALLER);
    memory->opened = 1;
    memory->key = handle.key;
    *out = user;
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
    PUBLIC_CALL;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || !memory->opened)
        return cuda_error(cudaErrorInvalidValue);
    if (memory->opened > 1) {
        memory->opened--;
        return cudaSuccess;
    }
    memory_quiet(memory, "cudaIpcCloseMemHandle", CALLER, "closes");
    memory_destroy(memory, CALLER);
    return cudaSuccess;
}
