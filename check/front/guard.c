/*
 * guard.c: host memory that is touched too early, and device memory that the host
 * touches.
 *
 * Pinned and managed memory is open to the host, and a queued operation may use it at the
 * same time. Over the stand-in, whose pages these are, the front closes them meanwhile;
 * the host that comes too early is stopped by the processor. Who works on other bytes of
 * a closed page is right: his instructions there are done one by one. Where that does not
 * do, from then on only those of the allocation's pages are closed of which an operation
 * uses all: whoever is stopped there, an instruction or a system call, is at bytes that
 * are in use. A system call would fail before it can be known; who is about to make one
 * is asked what it gives (channels.c). What the system or MPI reads and writes stays open
 * as long as they have it. Device memory cannot be reached by the host at all, here and
 * on GPUs.
 */
#define _GNU_SOURCE
#include "../base.h"
#include "answer.h"
#include "front.h"
#include "signals.h"
#include "tasks.h"

#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* --- Closed pages -------------------------------------------------------------- */

struct watched {
    const char *start;
    char *from, *to; // all pages that are closed lie between these; equal: none
    bool known, never, changed; // known: they were looked at
    bool writes;                // pages are closed that an operation writes
    bool beside;                // the host works beside what is in use
    int steps;                  // so often it has, one instruction at a time
    uint64_t closed;            // a number of its own for each time that pages were
};
static struct watched *watched; // guarded by the judge's lock
static size_t nwatched, room;
static uint64_t closings;
static struct fresh { // used since the pages were looked at last
    const void *allocation;
    struct judge_range range;
} fresh[16];
static size_t nfresh;

static struct watched *find_watched(const void *start) {
    for (size_t i = 0; i < nwatched; i++)
        if (watched[i].start == start)
            return &watched[i];
    return NULL;
}

static struct watched *watch(const void *start) {
    struct watched *found = find_watched(start);
    if (found)
        return found;
    if (nwatched == room) {
        room = room ? 2 * room : 16;
        watched = must_grow(watched, room * sizeof *watched);
    }
    watched[nwatched] = (struct watched){.start = start, .closed = ++closings};
    return &watched[nwatched++];
}

static void apply(struct judge *j);

/* The allocation's pages are looked at again at the end of the event. */
static void look_again(struct watched *w) {
    w->changed = true;
    front_at_out = apply;
}

void guard_changed(void *self, const void *allocation, const struct judge_range *range) {
    (void)self;
    if (!standin_host_blocks || !front_checks)
        return;
    if (allocation && watch(allocation)->known && nfresh < sizeof fresh / sizeof *fresh) {
        fresh[nfresh++] = (struct fresh){allocation, *range};
        front_at_out = apply;
    } else if (allocation) {
        look_again(watch(allocation));
    }
    for (size_t i = 0; i < nwatched && !allocation; i++)
        if (watched[i].from < watched[i].to)
            look_again(&watched[i]);
}

static bool host_too(const struct judge_memory *memory) {
    return memory->kind == JUDGE_PINNED || memory->kind == JUDGE_MANAGED;
}

void guard_never(const void *address) {
    struct judge_memory memory;
    struct judge *j = front_in();
    if (judge_memory_find(j, address, &memory) && host_too(&memory)) {
        struct watched *w = watch(memory.start);
        w->never = true;
        look_again(w);
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

/* What the system or MPI has now: whole pages. */
static struct held { char *from, *to; } * held; // guarded by the judge's lock
static size_t nheld, held_room;

struct closing {
    const struct judge_memory *memory;
    struct watched *watched;
    bool writing;
    char *from, *to; // closed last
};

static void close_pages(char *from, char *to, int protection, size_t first) {
    for (size_t i = first; i < nheld && from < to; i++) {
        if (held[i].to <= from || to <= held[i].from)
            continue;
        if (from < held[i].from)
            close_pages(from, held[i].from, protection, i + 1);
        from = held[i].to;
    }
    if (from < to)
        mprotect(from, (size_t)(to - from), protection);
}

static void close_part(void *self, const void *start, size_t bytes, bool write) {
    struct closing *closing = self;
    const char *begin = start, *end = begin + bytes, *first = closing->memory->start;
    const char *last = first + closing->memory->bytes;
    if (write != closing->writing)
        return;
    // The first and the last page of the allocation belong to it alone.
    bool parts = !closing->watched->beside;
    char *from = parts || begin <= first ? page_of(begin) : page_behind(begin);
    char *to = parts || end >= last ? page_behind(end) : page_of(end);
    if (from >= to || (closing->from <= from && to <= closing->to))
        return;
    close_pages(from, to, write ? PROT_NONE : PROT_READ, 0);
    closing->from = from;
    closing->to = to;
    struct watched *w = closing->watched;
    w->closed = ++closings;
    bool none = w->from == w->to;
    w->from = none || from < w->from ? from : w->from;
    w->to = none || to > w->to ? to : w->to;
    w->writes |= write;
}

static void open_all(struct watched *w) {
    if (w->from < w->to)
        mprotect(w->from, (size_t)(w->to - w->from), PROT_READ | PROT_WRITE);
    w->to = w->from;
    w->writes = false;
}

/* Before the allocation is given back: what lies there next is not to find its pages
 * closed. */
void guard_gone(struct judge *j, const void *start) {
    struct watched *w = find_watched(start);
    (void)j;
    if (!w)
        return;
    open_all(w);
    *w = watched[--nwatched];
}

/* What has come is closed too; unless pages are closed for who writes there, which who
 * reads there must not open. */
static void close_fresh(struct judge *j) {
    for (size_t i = 0; i < nfresh; i++) {
        const struct judge_range *range = &fresh[i].range;
        struct watched *w = find_watched(fresh[i].allocation);
        struct judge_memory memory;
        if (!w || w->changed || w->never)
            continue;
        if ((w->writes && !range->write) || !judge_memory_find(j, w->start, &memory) ||
            memory.start != w->start) {
            w->changed = true;
            continue;
        }
        struct closing closing = {
            .memory = &memory, .watched = w, .writing = range->write};
        const char *last = (const char *)memory.start + memory.bytes;
        size_t room = (size_t)(last - (const char *)range->start);
        close_part(&closing, range->start, range->bytes < room ? range->bytes : room,
                   range->write);
    }
    nfresh = 0;
}

/* Closes and opens pages as their uses have changed. */
static void apply(struct judge *j) {
    front_at_out = NULL;
    close_fresh(j);
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
        open_all(w);
        struct closing closing = {.memory = &memory, .watched = w};
        for (int writing = 0; writing < 2 && !w->never; writing++) {
            closing.writing = writing;
            closing.from = closing.to = NULL;
            judge_memory_in_use(j, w->start, close_part, &closing);
        }
        w->known = true;
    }
}

static void look_again_at(struct judge *j, const void *address) {
    struct judge_memory memory;
    struct watched *w =
        standin_host_blocks && judge_memory_find(j, address, &memory) && host_too(&memory)
            ? watch(memory.start)
            : NULL;
    if (w)
        look_again(w);
}

void guard_hold(struct judge *j, const void *buffer, size_t bytes) {
    if (held_room == nheld) {
        held_room = held_room ? 2 * held_room : 16;
        held = must_grow(held, held_room * sizeof *held);
    }
    held[nheld++] =
        (struct held){page_of(buffer), page_behind((const char *)buffer + bytes)};
    look_again_at(j, buffer);
}

void guard_let_go(struct judge *j, const void *buffer, size_t bytes) {
    char *from = page_of(buffer), *to = page_behind((const char *)buffer + bytes);
    for (size_t i = 0; i < nheld; i++)
        if (held[i].from == from && held[i].to == to) {
            held[i] = held[--nheld];
            look_again_at(j, buffer);
            return;
        }
}

/* In a process that was forked off, which has no judge. */
void guard_forked(void) {
    for (size_t i = 0; i < nwatched; i++)
        open_all(&watched[i]);
}

/* --- The host was stopped ------------------------------------------------------ */

static __thread const struct judge_at
    *host_call; // of MPI or the system, that has the buffer now

void guard_host_call(const struct judge_at *at) {
    host_call = at;
}

static uint64_t program_frame(const char *fault) {
    void *frames[64];
    return front_program_frame(fault, frames, backtrace(frames, 64));
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

/* strlen and its kin read whole vectors, in which their string begins or ends. What a
 * library reads is the host's doing only if nothing else lies there, or if it begins
 * where the operation's bytes begin. */
static __thread const char *passed_last; // that a library read

static bool may_read_over(struct judge *j, const char *address, bool write, void *fault,
                          bool early) {
    if (write || front_site_in_program(front_site((char *)fault + 1)))
        return false;
    const char *first = address - (uintptr_t)address % 64;
    bool near = passed_last && address > passed_last - 256 && address < passed_last + 256;
    if (!early)
        passed_last = address;
    return near || (judge_host_is_early(j, address - 1, false) &&
                    !(judge_host_is_early(j, first, false) &&
                      judge_host_is_early(j, first + 63, false)));
}

/* Pages of which an operation uses a part are open from now on. */
static void works_beside(struct judge *j, struct watched *w) {
    if (w->beside)
        return;
    w->beside = w->changed = true;
    apply(j);
}

/* Beside what is in use, one instruction at a time: with the pages open for it alone,
 * what the next one touches is seen again. It takes two signals for each, so it is done
 * so many times; and not under a debugger, for whom the second signal is. Only of the
 * program's own instructions: a library may be about to give the address to the system,
 * for which the pages have to stay open. Nor if the program has functions that a signal
 * starts: they come at any time, also while the judge is at work, and find the pages
 * closed. */
enum { FEW = 4 };
static __thread const void *stepping[FEW]; // the allocations that are open meanwhile
static __thread int nstepping;

#ifdef __x86_64__
enum { TRAP_FLAG = 0x100 }; // the processor stops behind the next instruction

static bool step(struct watched *w, char *fault, ucontext_t *context) {
    enum { MOST = 1000 };
    if (!front_site_in_program(front_site(fault + 1)) || host_call || w->steps == MOST ||
        nstepping == FEW || sigismember(&context->uc_sigmask, SIGTRAP) ||
        tasks_traced() || tasks_interrupted())
        return false;
    w->steps++;
    open_all(w);
    stepping[nstepping++] = w->start;
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    return true;
}

static void step_ends(ucontext_t *context) {
    context->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
}
#else
static bool step(struct watched *w, char *fault, ucontext_t *context) {
    (void)w, (void)fault, (void)context;
    return false;
}

static void step_ends(ucontext_t *context) {
    (void)context;
}
#endif

static void on_step(int number, siginfo_t *info, void *context) {
    if (nstepping == 0) {
        signals_pass_on(number, info, context);
        return;
    }
    int error = errno;
    step_ends(context);
    struct judge *j = front_in();
    while (nstepping > 0) {
        struct watched *w = find_watched(stepping[--nstepping]);
        if (w)
            w->changed = true;
    }
    apply(j);
    front_leave();
    errno = error;
}

/* What uses this memory may come behind a function of the program that waits for the
 * host, as at a gate, and then has not begun. What a function waits for nobody tells. So
 * the host is held for a second: a function that ends meanwhile did not wait for it. */
static bool at_gate(const void *start, size_t bytes, bool write, bool waits) {
    bool behind = judge_host_behind_function(front_in(), start, bytes, write, waits);
    front_leave();
    return behind;
}

void guard_at_gate(const void *start, size_t bytes, bool write) {
    enum { ENOUGH = 1000 }; // ms
    if (runs_host_function || !front_checks || !at_gate(start, bytes, write, false))
        return;
    int error = errno;
    front_depth++; // nanosleep is not the program's
    if (standin_host_blocks)
        standin_host_blocks(1);
    for (int ms = 1; at_gate(start, bytes, write, ms == ENOUGH); ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (standin_host_blocks)
        standin_host_blocks(0);
    front_depth--;
    errno = error;
}

/* Whether a page that the front has closed is what stopped this thread; or was, and
 * another thread has opened it since. Who is stopped at the same place once more, with
 * nothing closed between, is stopped by something else: the memory is not there any more,
 * or the program has closed it itself. */
static bool closed_here(const struct watched *w, const char *address, const void *fault) {
    static __thread struct stop {
        const void *fault, *address;
        uint64_t closed;
    } last;
    const struct stop before = last;
    last = (struct stop){fault, address, w->closed};
    return (w->from <= address && address < w->to) || before.fault != fault ||
           before.address != address || before.closed != w->closed;
}

static bool is_mapped(char *address) {
    unsigned char in_memory;
    return mincore(page_of(address), 1, &in_memory) == 0 || errno != ENOMEM;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    bool known;
    void *fault;
    bool write = was_write(context, &known, &fault);
    struct judge_memory memory;
    // A fault of our own, with an address that the program gave: no word about it.
    if (front_is_inside() || !front_checks) {
        signals_pass_on(number, info, context);
        return;
    }
    front_in_signal = host_call != NULL; // MPI may be what was interrupted
    if (!front_in_signal)
        guard_at_gate(info->si_addr, 1, write || !known);
    struct judge *j = front_in();
    bool found = judge_memory_find(j, info->si_addr, &memory);
    struct watched *w = found && host_too(&memory) ? find_watched(memory.start) : NULL;
    if (w && !closed_here(w, info->si_addr, fault)) {
        if (number == SIGBUS || !is_mapped(info->si_addr))
            judge_memory_lost(j, info->si_addr);
        front_leave();
        front_in_signal = false;
        signals_pass_on(number, info, context);
        return;
    }
    bool early = !w || judge_host_is_early(j, info->si_addr, write || !known);
    if (w && may_read_over(j, info->si_addr, write, fault, early))
        early = false;
    if (early && judge_host_may_fault(j, info->si_addr)) // to look for the line is dear
        judge_host_faults(j, info->si_addr, write, known,
                          host_call ? host_call->site : program_frame(fault));
    if (!found && runs_host_function && info->si_code > 0)
        judge_host_function_crashes(j, program_frame(fault));
    if (w && (early || w->beside)) // checks that only warn
        open_all(w);
    else if (w && !step(w, fault, context))
        works_beside(j, w);
    front_leave();
    front_in_signal = false;
    if (!w)
        signals_pass_on(number, info, context);
}

/* An argument of a call of the system: it may be an address. */
static void given(long argument) {
    const void *address = (const void *)argument;
    struct judge_memory memory;
    if (!guard_may_be_shared(address, 1) || front_is_inside())
        return;
    int error = errno;
    struct judge *j = front_in();
    struct watched *w =
        judge_memory_find(j, address, &memory) ? find_watched(memory.start) : NULL;
    if (w)
        works_beside(j, w);
    front_out();
    errno = error;
}

void guard_install(void) {
    void *warm[2];
    backtrace(warm, 2); // loads what a signal handler should not have to load
    signals_take(SIGSEGV, on_fault);
    signals_take(SIGBUS, on_fault);
    if (standin_host_blocks) {
        signals_take(SIGTRAP, on_step);
        channels_given = given;
    }
}

/* --- System calls -------------------------------------------------------------- */

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
    guard_at_gate(buffer, bytes, write);
    judge_host_uses(front_in(), buffer, bytes, write, false, at);
    front_out();
    errno = error;
}

static void hold(const void *buffer, size_t bytes, bool begins) {
    int error = errno;
    struct judge *j = front_in();
    (begins ? guard_hold : guard_let_go)(j, buffer, bytes);
    front_out();
    errno = error;
}

bool guard_may_be_shared(const void *buffer, size_t bytes) {
    uintptr_t from = (uintptr_t)buffer;
    return bytes > 0 && from < atomic_load_explicit(&highest, memory_order_relaxed) &&
           from + bytes > atomic_load_explicit(&lowest, memory_order_relaxed);
}

static size_t moved(ssize_t result) {
    return result > 0 ? (size_t)result : 0;
}

/* It may be for another process, or from one. What comes through a pipe or a socket may
 * have been sent unseen. */
static void speaks(void) {
}

static void hears(int file) {
    (void)file;
}

static int itself(int file) {
    return file;
}
#define NUMBER_OF(file) _Generic((file), int : itself, default : fileno)(file)

/* Threads of MPI read and write their own memory. They must not wait for the judge, who
 * may be waiting for them (MPI_Abort). */
#define a_library_calls() front_theirs(__builtin_return_address(0))

/* What is written is looked at before; of what is read, as much as came. The judge
 * itself reads and writes while this thread is inside it. */
#define SYSTEM(type, name, parameters, arguments, buffer, bytes, writes, failed, used) \
    FIND_BELOW(name, type(*) parameters)                                               \
    __attribute__((visibility("default"))) type name parameters {                      \
        if (!below_##name)                                                             \
            find_##name();                                                             \
        if (front_passes() || front_is_inside() || a_library_calls())                  \
            return below_##name arguments;                                             \
        bool shared = guard_may_be_shared(buffer, bytes);                              \
        struct judge_at at = {#name, 0};                                               \
        bool own = channels_matter() && tasks_is_own(__builtin_return_address(0));     \
        int before = errno;                                                            \
        if (shared) {                                                                  \
            at.site = front_site(__builtin_return_address(0));                         \
            if (!(writes))                                                             \
                look_at(buffer, bytes, false, at);                                     \
            hold(buffer, bytes, true);                                                 \
            guard_host_call(&at);                                                      \
        }                                                                              \
        if (!(writes) && own)                                                          \
            speaks();                                                                  \
        errno = 0;                                                                     \
        type result = below_##name arguments;                                          \
        if (shared) {                                                                  \
            guard_host_call(NULL);                                                     \
            hold(buffer, bytes, false);                                                \
        }                                                                              \
        bool fault = errno == EFAULT && (failed);                                      \
        if (fault)                                                                     \
            at.site = front_site(__builtin_return_address(0));                         \
        if (fault || (shared && (writes)))                                             \
            look_at(buffer, fault ? (size_t)(bytes) : (used), writes, at);             \
        if ((writes) && own)                                                           \
            hears(NUMBER_OF(file));                                                    \
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
SYSTEM(ssize_t, recvfrom,
       (int file, void *restrict to, size_t n, int flags, struct sockaddr *restrict who,
        socklen_t *restrict length),
       (file, to, n, flags, who, length), to, n, true, result < 0, moved(result))
SYSTEM(ssize_t, sendto,
       (int file, const void *from, size_t n, int flags, const struct sockaddr *who,
        socklen_t length),
       (file, from, n, flags, who, length), from, n, false, result < 0, moved(result))
SYSTEM(size_t, fread, (void *to, size_t size, size_t n, FILE *file), (to, size, n, file),
       to, size *n, true, result < n, size *result)
SYSTEM(size_t, fwrite, (const void *from, size_t size, size_t n, FILE *file),
       (from, size, n, file), from, size *n, false, result < n, size *result)
SYSTEM(char *, fgets, (char *restrict to, int n, FILE *restrict file), (to, n, file), to,
       (size_t)(n > 0 ? n : 0), true, !result, result ? strlen(result) + 1 : 0)
SYSTEM(int, fputs, (const char *restrict from, FILE *restrict file), (from, file), from,
       strlen(from), false, result < 0, strlen(from))
/* A thread of the C library's own works on these buffers later. */
#define LATER(name, type)                                                 \
    FIND_BELOW(name, int (*)(type *))                                     \
    __attribute__((visibility("default"))) int name(type *of) {           \
        if (!below_##name)                                                \
            find_##name();                                                \
        if (standin_host_blocks && !front_passes() && !a_library_calls()) \
            given((long)of->aio_buf);                                     \
        return below_##name(of);                                          \
    }
LATER(aio_read, struct aiocb)
LATER(aio_read64, struct aiocb64)
LATER(aio_write, struct aiocb)
LATER(aio_write64, struct aiocb64)

/* Several buffers. */
static bool any_shared(const struct iovec *parts, int n) {
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= guard_may_be_shared(parts[i].iov_base, parts[i].iov_len);
    return any;
}

static void look_at_all(const struct iovec *parts, int n, size_t bytes, bool write,
                        struct judge_at at) {
    for (int i = 0; i < n && bytes > 0; i++) {
        size_t part = parts[i].iov_len < bytes ? parts[i].iov_len : bytes;
        look_at(parts[i].iov_base, part, write, at);
        bytes -= part;
    }
}

static void hold_all(const struct iovec *parts, int n, bool begins) {
    for (int i = 0; i < n; i++)
        hold(parts[i].iov_base, parts[i].iov_len, begins);
}

#define VECTOR(name, parameters, arguments, parts, n, writes)                    \
    FIND_BELOW(name, ssize_t(*) parameters)                                      \
    __attribute__((visibility("default"))) ssize_t name parameters {             \
        if (!below_##name)                                                       \
            find_##name();                                                       \
        if (front_passes() || front_is_inside() || a_library_calls() ||          \
            !any_shared(parts, n))                                               \
            return below_##name arguments;                                       \
        struct judge_at at = {#name, front_site(__builtin_return_address(0))};   \
        if (!(writes))                                                           \
            look_at_all(parts, n, SIZE_MAX, false, at);                          \
        hold_all(parts, n, true);                                                \
        guard_host_call(&at);                                                    \
        ssize_t result = below_##name arguments;                                 \
        guard_host_call(NULL);                                                   \
        hold_all(parts, n, false);                                               \
        bool fault = result < 0 && errno == EFAULT;                              \
        if (fault || (writes))                                                   \
            look_at_all(parts, n, fault ? SIZE_MAX : moved(result), writes, at); \
        return result;                                                           \
    }

VECTOR(readv, (int file, const struct iovec *to, int n), (file, to, n), to, n, true)
VECTOR(writev, (int file, const struct iovec *from, int n), (file, from, n), from, n,
       false)
VECTOR(preadv, (int file, const struct iovec *to, int n, off_t at_), (file, to, n, at_),
       to, n, true)
VECTOR(preadv64, (int file, const struct iovec *to, int n, off64_t at_),
       (file, to, n, at_), to, n, true)
VECTOR(pwritev, (int file, const struct iovec *from, int n, off_t at_),
       (file, from, n, at_), from, n, false)
VECTOR(pwritev64, (int file, const struct iovec *from, int n, off64_t at_),
       (file, from, n, at_), from, n, false)
VECTOR(preadv2, (int file, const struct iovec *to, int n, off_t at_, int flags),
       (file, to, n, at_, flags), to, n, true)
VECTOR(pwritev2, (int file, const struct iovec *from, int n, off_t at_, int flags),
       (file, from, n, at_, flags), from, n, false)
VECTOR(recvmsg, (int file, struct msghdr *to, int flags), (file, to, flags), to->msg_iov,
       (int)to->msg_iovlen, true)
VECTOR(sendmsg, (int file, const struct msghdr *from, int flags), (file, from, flags),
       from->msg_iov, (int)from->msg_iovlen, false)
