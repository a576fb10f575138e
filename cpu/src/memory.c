/*
 * memory.c: allocations, each mapped twice.
 *
 * The program sees device memory at an address that it cannot read or write, as on a GPU:
 * a host that dereferences it is stopped and told so. The bytes lie at another address,
 * the shadow, which only this library knows. Pinned and managed memory has both addresses
 * for the same bytes: it is open to the host except while a queued operation uses it.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <ucontext.h>
#include <unistd.h>

static struct memory **table; // sorted by user address
static size_t used, capacity;

enum { HUGE = 4 << 20 }; // two large pages

/* Freed allocations, to name a use after free. */
enum { REMEMBERED = 64 };
static struct memory freed[REMEMBERED];
static size_t nfreed;

const struct memory *memory_freed(const void *address) {
    const char *at = address;
    for (size_t i = 0; i < REMEMBERED && i < nfreed; i++)
        if (at >= freed[i].user && at < freed[i].user + freed[i].mapped)
            return &freed[i];
    return NULL;
}

static size_t position_of(const char *address) {
    size_t low = 0, high = used;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle]->user <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low; // of the first allocation that starts after address
}

struct memory *memory_find(const void *address) {
    size_t i = position_of(address);
    if (i == 0 || (const char *)address >= table[i - 1]->user + table[i - 1]->mapped)
        return NULL;
    return table[i - 1];
}

void *shadow(const void *address) {
    struct memory *memory = memory_find(address);
    return memory ? memory->shadow + ((const char *)address - memory->user)
                  : (void *)(uintptr_t)address;
}

size_t memory_count(void) {
    return used;
}

struct memory *memory_at(size_t i) {
    return table[i];
}

const char *memory_kind_name(enum memory_kind kind) {
    return kind == MEMORY_DEVICE   ? "device"
           : kind == MEMORY_PINNED ? "pinned"
                                   : "managed";
}

static void install_guard(void);

static size_t in_pages(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

struct memory *memory_enter(void *user, void *inner, size_t bytes, enum memory_kind kind,
                            int device, void *site) {
    if (used == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        table = must_grow(table, capacity * sizeof *table);
    }
    struct memory *memory = must_alloc(sizeof *memory);
    *memory = (struct memory){.user = user,
                              .shadow = inner,
                              .bytes = bytes,
                              .mapped = in_pages(bytes),
                              .kind = kind,
                              .device = device,
                              .site = site,
                              .file = -1};
    size_t at = position_of(user);
    memmove(table + at + 1, table + at, (used - at) * sizeof *table);
    table[at] = memory;
    used++;
    install_guard();
    return memory;
}

cudaError_t memory_create(void **out, size_t bytes, enum memory_kind kind, void *site) {
    *out = NULL;
    if (bytes == 0)
        return cudaSuccess;
    if (kind == MEMORY_DEVICE) {
        size_t available, total;
        cudaError_t error = cudaMemGetInfo(&available, &total);
        if (error != cudaSuccess)
            return error;
        if (bytes > available)
            return cudaErrorMemoryAllocation;
    }
    int device = 0;
    cudaGetDevice(&device);
    size_t mapped = in_pages(bytes);
    if (mapped < bytes)
        return cudaErrorMemoryAllocation;
    void *user = MAP_FAILED, *inner = MAP_FAILED;
    if (kind == MEMORY_DEVICE) {
        // The host may touch nothing there: an address without memory is enough.
        user = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
        inner = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        // Large pages, where there is room for some: MPI moves them much faster.
        if (inner != MAP_FAILED && mapped >= HUGE)
            madvise(inner, mapped, MADV_HUGEPAGE);
    } else {
        int file = memfd_create("nccl-cpu", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, (off_t)mapped) == 0) {
            user = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            inner = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        }
        if (file >= 0)
            close(file);
    }
    if (user == MAP_FAILED || inner == MAP_FAILED) {
        if (user != MAP_FAILED)
            munmap(user, mapped);
        if (inner != MAP_FAILED)
            munmap(inner, mapped);
        return cudaErrorMemoryAllocation;
    }
    memory_enter(user, inner, bytes, kind, device, site);
    *out = user;
    return cudaSuccess;
}

void memory_destroy(struct memory *memory, void *site) {
    size_t at = position_of(memory->user) - 1;
    memmove(table + at, table + at + 1, (used - at - 1) * sizeof *table);
    used--;
    memory->end_site = site;
    freed[nfreed++ % REMEMBERED] = *memory;
    munmap(memory->user, memory->mapped);
    munmap(memory->shadow, memory->mapped);
    if (memory->file >= 0)
        close(memory->file);
    free(memory);
}

void memory_reset_device(int device) {
    for (size_t i = used; i > 0; i--)
        if (table[i - 1]->device == device && table[i - 1]->kind != MEMORY_PINNED)
            memory_destroy(table[i - 1], NULL);
}

/* An unseen operation on these bytes of `memory`, a writing one rather than a reading. */
static struct op *operation_on(struct memory *memory, const char *start, size_t bytes,
                               struct range **used) {
    struct op *found = NULL;
    *used = NULL;
    for (int s = 0; s < nstreams; s++)
        for (struct op *op = streams[s] ? streams[s]->first : NULL; op; op = op->next)
            for (int r = 0; r < op->nranges; r++) {
                // A function on a stream comes before what is queued there behind it.
                if (running_function && running_function->stream == op->stream)
                    continue;
                struct range *range = &op->ranges[r];
                if (range->start < start + bytes && start < range->start + range->bytes &&
                    range->start >= memory->user &&
                    range->start < memory->user + memory->mapped) {
                    if (found && !range->write)
                        continue;
                    found = op;
                    *used = range;
                }
            }
    return found;
}

void memory_guard(struct memory *memory) {
    if (memory->kind == MEMORY_DEVICE || library.check == CHECK_OFF)
        return;
    struct range *used;
    struct op *op = operation_on(memory, memory->user, memory->bytes, &used);
    // What a queued operation only reads, the host may read too.
    mprotect(memory->user, memory->mapped,
             !op           ? PROT_READ | PROT_WRITE
             : used->write ? PROT_NONE
                           : PROT_READ);
}

/* --- The host touches what it must not -------------------------------------------- */

static struct sigaction before_segv, before_bus;

/* The first frame of the program above the one that the signal interrupted. */
static void *program_frame(void *fault) {
    void *frames[64];
    int n = backtrace(frames, 64), at = 0;
    for (int i = 0; i < n; i++)
        if (frames[i] == fault)
            at = i;
    if (site_offset(fault) >= 0)
        return (char *)fault + 1;
    for (int i = at; i < n; i++)
        if (site_offset(frames[i]) >= 0 && i > 1)
            return frames[i];
    return fault;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    const char *address = info->si_addr;
    struct memory *memory = memory_find(address);
    void *fault = NULL;
    const char *verb = "touches";
#if defined(__x86_64__)
    ucontext_t *state = context;
    fault = (void *)state->uc_mcontext.gregs[REG_RIP];
    verb = state->uc_mcontext.gregs[REG_ERR] & 2 ? "writes to" : "reads";
#elif defined(__aarch64__)
    fault = (void *)((ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    // In a call to this library or to MPI, it is the call that touched it.
    void *line = called_from && !running_function ? called_from : program_frame(fault);
    char where[256], made[256], other[256], words[256];
    struct text text = {0};
    if (memory && memory->kind == MEMORY_DEVICE && library.check != CHECK_OFF) {
        text_add(
            &text,
            "memory: the host %s device memory\n"
            "  rank %d on %s: at %s, byte %zu of %zu bytes of cudaMalloc at %s\n"
            "  Hint: only the GPU can use this address; copy with cudaMemcpy.\n"
            "        On a real GPU the program ends here with a segmentation fault.\n",
            verb, library.world, library.host, site_text(where, line),
            (size_t)(address - memory->user), memory->bytes,
            site_text(made, memory->site));
        report(&text, false);
    }
    if (memory && memory->kind != MEMORY_DEVICE) {
        struct range *used;
        struct op *op = operation_on(memory, address, 1, &used);
        if (op && library.check != CHECK_OFF) {
            text_add(
                &text,
                "race: the host %s %s memory that a queued operation still uses\n"
                "  rank %d on %s: at %s, byte %zu of %zu bytes made at %s\n"
                "  queued: %s at %s, which %s it\n"
                "  Hint: call cudaStreamSynchronize first: until then nothing is known"
                " of the operation.\n",
                verb, memory_kind_name(memory->kind), library.world, library.host,
                site_text(where, line), (size_t)(address - memory->user), memory->bytes,
                site_text(made, memory->site), range_text(words, op, used),
                range_site(other, op, used), used->write ? "writes" : "reads");
            report(&text, true);
        }
        // A neighbour on the same page, or checks that only warn: let it through.
        mprotect(memory->user, memory->mapped, PROT_READ | PROT_WRITE);
        return;
    }
    const struct memory *gone = memory_freed(address);
    if (gone && library.check != CHECK_OFF) {
        text_add(
            &text,
            "memory: the host %s %s memory that was freed before\n"
            "  rank %d on %s: at %s, byte %zu of %zu bytes made at %s, freed at %s\n",
            verb, memory_kind_name(gone->kind), library.world, library.host,
            site_text(where, line), (size_t)(address - gone->user), gone->bytes,
            site_text(made, gone->site), site_text(other, gone->end_site));
        report(&text, false);
    }
    // Not ours: as it would have been without us.
    sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
}

static void install_guard(void) {
    static bool installed;
    if (installed)
        return;
    installed = true;
    void *warm[2];
    backtrace(warm, 2); // loads what a signal handler should not have to load
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
}

/* --- How much there is ------------------------------------------------------------ */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    PUBLIC_CALL;
    int ndevices, device;
    if (!free_bytes || !total)
        return cudaErrorInvalidValue;
    cudaError_t error = cudaGetDeviceCount(&ndevices);
    if (error != cudaSuccess)
        return error;
    cudaGetDevice(&device);
    // The devices share less than half of the host's memory: its programs need the rest.
    struct sysinfo info;
    sysinfo(&info);
    size_t all = (size_t)info.totalram * info.mem_unit;
    *total = all / 8 * 3 / (size_t)ndevices;
    size_t mine = 0;
    for (size_t i = 0; i < used; i++)
        if (table[i]->device == device && table[i]->kind != MEMORY_PINNED &&
            !table[i]->opened)
            mine += table[i]->mapped;
    *free_bytes = mine < *total ? *total - mine : 0;
    return cudaSuccess;
}

/* --- The calls -------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    PUBLIC_CALL;
    return cuda_error(!pointer ? cudaErrorInvalidValue
                               : memory_create(pointer, bytes, MEMORY_DEVICE, CALLER));
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    PUBLIC_CALL;
    if (!pointer || flags & ~7u)
        return cuda_error(cudaErrorInvalidValue);
    return cuda_error(memory_create(pointer, bytes, MEMORY_PINNED, CALLER));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    PUBLIC_CALL;
    return cuda_error(!pointer ? cudaErrorInvalidValue
                               : memory_create(pointer, bytes, MEMORY_PINNED, CALLER));
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
    PUBLIC_CALL;
    if (!pointer || bytes == 0 ||
        (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cuda_error(cudaErrorInvalidValue);
    return cuda_error(memory_create(pointer, bytes, MEMORY_MANAGED, CALLER));
}

static bool uses(struct stream *stream, struct memory *memory) {
    for (struct op *op = stream->first; op; op = op->next)
        for (int r = 0; r < op->nranges; r++)
            if (memory_find(op->ranges[r].start) == memory)
                return true;
    return false;
}

void memory_quiet(struct memory *memory, const char *name, void *site, const char *what) {
    check_host_access(name, site, memory->user, memory->bytes, what);
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && uses(streams[s], memory))
            wait_for(streams[s], streams[s]->queued, name, site);
}

static cudaError_t free_one(void *pointer, bool pinned, const char *name, void *site) {
    if (!pointer)
        return cudaSuccess;
    struct memory *memory = memory_find(pointer);
    if (!memory || memory->user != pointer || memory->opened ||
        (memory->kind == MEMORY_PINNED) != pinned)
        return cudaErrorInvalidValue;
    // As cudaFree does: what is still under way there ends first.
    memory_quiet(memory, name, site, "frees");
    memory_destroy(memory, site);
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    PUBLIC_CALL;
    return cuda_error(free_one(pointer, false, "cudaFree", CALLER));
}

cudaError_t cudaFreeHost(void *pointer) {
    PUBLIC_CALL;
    return cuda_error(free_one(pointer, true, "cudaFreeHost", CALLER));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                     const void *pointer) {
    PUBLIC_CALL;
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
