/*
 * guard.c: host memory that is touched too early, and device memory that the host
 * touches.
 *
 * Pinned and managed memory is open to the host, and a queued operation may use it at the
 * same time. Over the stand-in, whose pages these are, the front closes them meanwhile;
 * the host that comes too early is stopped by the processor. Closed are only pages of
 * which the operation uses all that the allocation has on them: whoever works on other
 * bytes of a page is right, and a system call there must not fail. Device memory cannot
 * be reached by the host at all, here and on GPUs.
 */
#define _GNU_SOURCE
#include "../base.h"
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

void front_in_signal(bool yes);

/* --- Closed pages
 * -------------------------------------------------------------------------- */

struct watched {
    const char *start;
    bool closed, never, changed;
};
static struct watched *watched; // guarded by the judge's lock
static size_t nwatched, room;
static bool any_changed;

static struct watched *watch(const void *start) {
    for (size_t i = 0; i < nwatched; i++)
        if (watched[i].start == start)
            return &watched[i];
    if (nwatched == room) {
        room = room ? 2 * room : 16;
        watched = must_grow(watched, room * sizeof *watched);
    }
    watched[nwatched] = (struct watched){.start = start};
    return &watched[nwatched++];
}

void guard_changed(void *self, const void *allocation) {
    (void)self;
    if (!standin_host_blocks || !front_checks)
        return;
    if (allocation)
        any_changed = watch(allocation)->changed = true;
    for (size_t i = 0; i < nwatched && !allocation; i++)
        any_changed |= watched[i].changed |= watched[i].closed;
}

void guard_never(const void *address) {
    struct judge_memory memory;
    struct judge *j = front_in();
    if (judge_memory_find(j, address, &memory) &&
        (memory.kind == JUDGE_PINNED || memory.kind == JUDGE_MANAGED)) {
        struct watched *w = watch(memory.start);
        w->never = true;
        w->changed = any_changed = true;
    }
    front_out();
}

static char *page_of(const char *address) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (char *)((uintptr_t)address / page * page);
}

static char *page_behind(const char *address) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (char *)(((uintptr_t)address + page - 1) / page * page);
}

struct closing {
    const struct judge_memory *memory;
    bool writing, any;
};

static void close_part(void *self, const void *start, size_t bytes, bool write) {
    struct closing *closing = self;
    const char *begin = start, *end = begin + bytes, *first = closing->memory->start;
    const char *last = first + closing->memory->bytes;
    if (write != closing->writing)
        return;
    // The first and the last page of the allocation belong to it alone.
    char *from = begin <= first ? page_of(first) : page_behind(begin);
    char *to = end >= last ? page_behind(last) : page_of(end);
    if (from >= to)
        return;
    mprotect(from, (size_t)(to - from), write ? PROT_NONE : PROT_READ);
    closing->any = true;
}

static void open_all(const struct judge_memory *memory) {
    char *from = page_of(memory->start),
         *to = page_behind((const char *)memory->start + memory->bytes);
    mprotect(from, (size_t)(to - from), PROT_READ | PROT_WRITE);
}

/* Before the allocation is given back: what lies there next is not to find its pages
 * closed. */
void guard_gone(struct judge *j, const void *start) {
    struct judge_memory memory;
    for (size_t i = 0; i < nwatched; i++) {
        if (watched[i].start != start)
            continue;
        if (watched[i].closed && judge_memory_find(j, start, &memory))
            open_all(&memory);
        watched[i] = watched[--nwatched];
        return;
    }
}

void guard_apply(struct judge *j) {
    if (!any_changed)
        return;
    any_changed = false;
    for (size_t i = 0; i < nwatched; i++) {
        struct watched *w = &watched[i];
        struct judge_memory memory;
        if (!w->changed)
            continue;
        w->changed = false;
        if (!judge_memory_find(j, w->start, &memory) || memory.start != w->start) {
            *w = watched[--nwatched]; // it is gone
            i--;
            continue;
        }
        if (w->closed)
            open_all(&memory);
        struct closing closing = {.memory = &memory};
        for (int writing = 0; writing < 2 && !w->never; writing++) {
            closing.writing = writing;
            judge_memory_in_use(j, w->start, close_part, &closing);
        }
        w->closed = closing.any;
    }
}

/* --- The host was stopped
 * ------------------------------------------------------------------ */

static struct sigaction before_segv, before_bus;
static __thread const struct judge_at
    *host_call; // of MPI or the system, that has the buffer now

void guard_host_call(const struct judge_at *at) {
    host_call = at;
}

/* The first frame at or above the one that was interrupted that is a line of the program:
 * not of a library, nor of a header (std::fill). */
static uint64_t program_frame(void *fault) {
    enum { PROGRAM = 48 };
    void *frames[64];
    int n = backtrace(frames, 64), at = 2;
    uint64_t site = front_site((char *)fault + 1), first = site;
    bool any = site >> PROGRAM == 0;
    if (any && front_is_own(site))
        return site;
    for (int i = 0; i < n; i++)
        if (frames[i] == fault)
            at = i + 1;
    for (int i = at; i < n; i++) {
        site = front_site(frames[i]);
        if (site >> PROGRAM != 0)
            continue;
        if (front_is_own(site))
            return site;
        first = any ? first : site;
        any = true;
    }
    return first;
}

/* Whether the access was a write, as the processor says it. */
static bool was_write(void *context, bool *known, void **fault) {
    *known = false;
    *fault = NULL;
#if defined(__x86_64__)
    const ucontext_t *state = context;
    *fault = (void *)state->uc_mcontext.gregs[REG_RIP];
    *known = true;
    return state->uc_mcontext.gregs[REG_ERR] & 2;
#elif defined(__aarch64__)
    // A list of records follows the registers; the one of the exception has its syndrome,
    // in which bit 6 says write. Linux, Documentation/arch/arm64/signal.
    const ucontext_t *state = context;
    *fault = (void *)state->uc_mcontext.pc;
    const char *at = (const char *)state->uc_mcontext.__reserved;
    for (size_t used = 0; used < sizeof state->uc_mcontext.__reserved;) {
        struct {
            uint32_t magic, size;
            uint64_t syndrome;
        } record;
        memcpy(&record, at + used, sizeof record);
        if (record.magic == 0 || record.size == 0)
            break;
        if (record.magic == 0x45535201) {
            *known = true;
            return record.syndrome >> 6 & 1;
        }
        used += record.size;
    }
    return false;
#else
    (void)context;
    return false;
#endif
}

static void on_fault(int number, siginfo_t *info, void *context) {
    bool known, was_closed = false;
    void *fault;
    bool write = was_write(context, &known, &fault);
    struct judge_memory memory;
    // A fault of our own, with an address that the program gave: no word about it.
    if (front_is_inside() || !front_checks) {
        sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
        return;
    }
    front_in_signal(host_call != NULL); // MPI may be what was interrupted
    struct judge *j = front_in();
    judge_host_faults(j, info->si_addr, write, known,
                      host_call ? host_call->site : program_frame(fault));
    // Checks that only warn, or a neighbour: let it through.
    if (judge_memory_find(j, info->si_addr, &memory))
        for (size_t i = 0; i < nwatched; i++)
            if (watched[i].start == memory.start && watched[i].closed) {
                open_all(&memory);
                watched[i].closed = false;
                was_closed = true;
            }
    front_leave();
    front_in_signal(false);
    if (!was_closed) // as it would have been without us
        sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
}

void guard_install(void) {
    void *warm[2];
    backtrace(warm, 2); // loads what a signal handler should not have to load
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
}

/* --- System calls
 * -------------------------------------------------------------------------- */

/* Where pinned and managed memory lies, or has lain; most buffers lie elsewhere. */
static atomic_uintptr_t lowest = UINTPTR_MAX, highest;

void guard_made(const void *start, size_t bytes) {
    uintptr_t from = (uintptr_t)start, to = from + bytes, old = atomic_load(&lowest);
    while (from < old && !atomic_compare_exchange_weak(&lowest, &old, from))
        ;
    old = atomic_load(&highest);
    while (to > old && !atomic_compare_exchange_weak(&highest, &old, to))
        ;
}

/* The kernel does not stop a program that gives it an address it must not use: the call
 * fails with EFAULT, and few programs look. And some calls look at the address only
 * later, or never (/dev/null). */
static void look_at(const void *buffer, size_t bytes, bool write, struct judge_at at) {
    int error = errno;
    judge_host_uses(front_in(), buffer, bytes, write, false, at);
    front_out();
    errno = error;
}

static bool may_be_shared(const void *buffer, size_t bytes) {
    uintptr_t from = (uintptr_t)buffer;
    return bytes > 0 && from < atomic_load_explicit(&highest, memory_order_relaxed) &&
           from + bytes > atomic_load_explicit(&lowest, memory_order_relaxed);
}

static size_t moved(ssize_t result) {
    return result > 0 ? (size_t)result : 0;
}

/* What is written is looked at before; of what is read, as much as came. The function
 * below is looked up at the start: a signal handler may call this one. The judge itself
 * reads and writes while this thread is inside it. */
#define SYSTEM(type, name, parameters, arguments, buffer, bytes, writes, failed, used) \
    static type(*below_##name) parameters;                                             \
    __attribute__((constructor(101))) static void find_##name(void) {                  \
        below_##name = (type(*) parameters)dlsym(RTLD_NEXT, #name);                    \
    }                                                                                  \
    __attribute__((visibility("default"))) type name parameters {                      \
        if (!below_##name)                                                             \
            find_##name();                                                             \
        if (front_passes() || front_is_inside())                                       \
            return below_##name arguments;                                             \
        bool shared = may_be_shared(buffer, bytes);                                    \
        struct judge_at at = {#name, 0};                                               \
        int before = errno;                                                            \
        if (shared) {                                                                  \
            at.site = front_site(__builtin_return_address(0));                         \
            if (!(writes))                                                             \
                look_at(buffer, bytes, false, at);                                     \
            guard_host_call(&at);                                                      \
        }                                                                              \
        errno = 0;                                                                     \
        type result = below_##name arguments;                                          \
        if (shared)                                                                    \
            guard_host_call(NULL);                                                     \
        bool fault = errno == EFAULT && (failed);                                      \
        if (fault)                                                                     \
            at.site = front_site(__builtin_return_address(0));                         \
        if (fault || (shared && (writes)))                                             \
            look_at(buffer, fault ? (size_t)(bytes) : (used), writes, at);             \
        errno = errno ? errno : before;                                                \
        return result;                                                                 \
    }

SYSTEM(ssize_t, read, (int file, void *to, size_t n), (file, to, n), to, n, true,
       result < 0, moved(result))
SYSTEM(ssize_t, pread, (int file, void *to, size_t n, off_t at_), (file, to, n, at_), to,
       n, true, result < 0, moved(result))
SYSTEM(ssize_t, pread64, (int file, void *to, size_t n, off64_t at_), (file, to, n, at_),
       to, n, true, result < 0, moved(result))
SYSTEM(ssize_t, write, (int file, const void *from, size_t n), (file, from, n), from, n,
       false, result < 0, moved(result))
SYSTEM(ssize_t, pwrite, (int file, const void *from, size_t n, off_t at_),
       (file, from, n, at_), from, n, false, result < 0, moved(result))
SYSTEM(ssize_t, pwrite64, (int file, const void *from, size_t n, off64_t at_),
       (file, from, n, at_), from, n, false, result < 0, moved(result))
SYSTEM(ssize_t, recv, (int file, void *to, size_t n, int flags), (file, to, n, flags), to,
       n, true, result < 0, moved(result))
SYSTEM(ssize_t, send, (int file, const void *from, size_t n, int flags),
       (file, from, n, flags), from, n, false, result < 0, moved(result))
SYSTEM(size_t, fread, (void *to, size_t size, size_t n, FILE *file), (to, size, n, file),
       to, size *n, true, result < n, size *result)
SYSTEM(size_t, fwrite, (const void *from, size_t size, size_t n, FILE *file),
       (from, size, n, file), from, size *n, false, result < n, size *result)
