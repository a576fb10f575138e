/*
 * pages.c: host memory that is touched too early, and device memory that the host
 * touches.
 *
 * Pinned and managed memory is open to the host while queued operations use it. Over the
 * stand-in, whose pages these are, the front closes a page while one operation uses all
 * of it; of the first and the last page, all that the allocation has there. A host that
 * is stopped at such a page came too early. Whoever works on other bytes, the system or
 * MPI among them, never meets a closed page. Device memory cannot be reached by the host
 * at all, here and on GPUs.
 */
#define _GNU_SOURCE
#include "pages.h"

#include "base/base.h"
#include "enter.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>

enum page { OPEN, READ_ONLY, CLOSED };

struct watched {
    char *start, *end;
    size_t npages;
    unsigned char *pages; // enum page
    bool any_closed, outdated;
};
static struct watched *watched; // guarded by the judge's lock
static size_t nwatched, room;
static uint64_t closings; // so often a page was closed

static size_t page_bytes(void) {
    static size_t bytes;
    return bytes ? bytes : (bytes = (size_t)sysconf(_SC_PAGESIZE));
}

/* The allocation begins with a page of its own. */
static struct watched *find_watched(const void *address) {
    for (size_t i = 0; i < nwatched; i++)
        if ((const char *)address >= watched[i].start &&
            (const char *)address < watched[i].end)
            return &watched[i];
    return NULL;
}

static void protect(const struct watched *w, size_t from, size_t to, enum page state) {
    static const int protections[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
    mprotect(w->start + from * page_bytes(), (to - from) * page_bytes(),
             protections[state]);
}

/* The pages as they are to be; those that differ are changed, neighbours at once. */
static void become(struct watched *w, const unsigned char *wanted) {
    for (size_t i = 0, next; i < w->npages; i = next) {
        next = i + 1;
        if (wanted[i] == w->pages[i])
            continue;
        while (next < w->npages && wanted[next] == wanted[i] &&
               wanted[next] != w->pages[next])
            next++;
        protect(w, i, next, (enum page)wanted[i]);
        memset(w->pages + i, wanted[i], next - i);
        closings += wanted[i] != OPEN;
        w->any_closed |= wanted[i] != OPEN;
    }
}

static void open_all(struct watched *w) {
    if (w->any_closed)
        protect(w, 0, w->npages, OPEN);
    memset(w->pages, OPEN, w->npages);
    w->any_closed = false;
}

/* The pages of which a use has all. */
static void pages_of(const struct watched *w, const char *start, size_t bytes,
                     size_t *from, size_t *to) {
    const char *begin = start < w->start ? w->start : start, *end = start + bytes;
    size_t first = (size_t)(begin - w->start);
    *from = (first + page_bytes() - 1) / page_bytes();
    *to = end >= w->end ? w->npages : (size_t)(end - w->start) / page_bytes();
}

struct closing {
    const struct watched *w;
    unsigned char *wanted;
};

static void wants_closed(void *self, const void *start, size_t bytes, bool write) {
    struct closing *closing = self;
    const unsigned char state = write ? CLOSED : READ_ONLY;
    size_t from, to;
    pages_of(closing->w, start, bytes, &from, &to);
    for (size_t i = from; i < to; i++)
        if (closing->wanted[i] < state)
            closing->wanted[i] = state;
}

static void close_more(struct watched *w, const struct judge_range *range) {
    size_t from, to;
    pages_of(w, range->start, range->bytes, &from, &to);
    if (from >= to)
        return;
    struct closing closing = {w, must_alloc(w->npages)};
    memcpy(closing.wanted, w->pages, w->npages);
    wants_closed(&closing, range->start, range->bytes, range->write);
    become(w, closing.wanted);
    free(closing.wanted);
}

/* Operations have ended: what others use stays closed. */
static void open_what_is_done(struct judge *j) {
    front_at_out = NULL;
    for (size_t i = 0; i < nwatched; i++) {
        struct watched *w = &watched[i];
        if (!w->outdated)
            continue;
        struct closing closing = {w, must_alloc(w->npages)};
        w->outdated = w->any_closed = false;
        judge_memory_in_use(j, w->start, wants_closed, &closing);
        become(w, closing.wanted);
        for (size_t p = 0; p < w->npages && !w->any_closed; p++)
            w->any_closed = w->pages[p] != OPEN;
        free(closing.wanted);
    }
}

void pages_changed(void *self, const void *allocation, const struct judge_range *range) {
    (void)self;
    struct watched *w = allocation && front_checks ? find_watched(allocation) : NULL;
    if (w)
        close_more(w, range);
    for (size_t i = 0; i < nwatched && !allocation; i++)
        if (watched[i].any_closed) {
            watched[i].outdated = true;
            front_at_out = open_what_is_done;
        }
}

void pages_made(void *start, size_t bytes) {
    if (!OVER_STANDIN)
        return;
    pages_gone(start);
    ROOM(watched, nwatched, &room);
    size_t npages = (bytes + page_bytes() - 1) / page_bytes();
    watched[nwatched++] = (struct watched){.start = start,
                                           .end = (char *)start + bytes,
                                           .npages = npages,
                                           .pages = must_alloc(npages)};
}

void pages_gone(const void *address) {
    struct watched *w = find_watched(address);
    if (!w)
        return;
    open_all(w);
    free(w->pages);
    *w = watched[--nwatched];
}

void pages_forked(void) {
    for (size_t i = 0; i < nwatched; i++)
        if (watched[i].any_closed)
            protect(&watched[i], 0, watched[i].npages, OPEN);
}

static __thread const struct judge_at *mpi_call; // that has the buffer now

void pages_mpi_call(const struct judge_at *at) {
    mpi_call = at;
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

/* A page of the front's that was closed is open now, and the access is made again. False:
 * the same access was stopped before, with no page closed since: by something else. */
static bool opens(struct watched *w, const void *address) {
    static __thread const void *last;
    static __thread uint64_t last_closings;
    bool again = !w->any_closed && last == address && last_closings == closings;
    last = address;
    last_closings = closings;
    open_all(w);
    return !again;
}

static struct sigaction before; // who had the signal

static void pass_on(int number, siginfo_t *info, void *context) {
    const struct sigaction none = {.sa_handler = SIG_DFL};
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || info->si_code > 0) {
        // A fault comes again when the instruction does; a signal that was sent does not.
        sigaction(number, &none, NULL);
        if (info->si_code <= 0)
            raise(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context) {
    bool known;
    void *fault;
    bool write = was_write(context, &known, &fault);
    // A fault of our own, with an address that the program gave: no word about it.
    if (front_is_inside() || !front_checks) {
        pass_on(number, info, context);
        return;
    }
    front_in_signal = mpi_call != NULL; // MPI may be what was interrupted
    struct judge *j = front_in();
    struct watched *w = find_watched(info->si_addr);
    bool early = !w || judge_host_is_early(j, info->si_addr, write || !known);
    if (early && judge_host_may_fault(j, info->si_addr)) // to look for the line is dear
        judge_host_faults(j, info->si_addr, write, known,
                          mpi_call ? mpi_call->site : program_frame(fault));
    bool goes_on = w && opens(w, info->si_addr); // if the checks only warn
    front_leave();
    front_in_signal = false;
    if (!goes_on)
        pass_on(number, info, context);
}

/* The program's own handler stays where it is. */
void pages_install(void) {
    static bool installed;
    struct sigaction now, ours = {.sa_sigaction = on_fault,
                                  .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    void *warm[2];
    backtrace(warm, 2); // loads what a signal handler should not have to load
    sigaction(SIGSEGV, NULL, &now);
    if (now.sa_sigaction == on_fault ||
        (installed && !front_caller((void *)(uintptr_t)now.sa_sigaction).theirs))
        return;
    before = now;
    installed = true;
    sigaction(SIGSEGV, &ours, NULL);
}
