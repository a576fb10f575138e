/*
 * fault.c: what is said of a kernel that uses an address which leads nowhere.
 *
 * The processor raises a signal. The kernel is given up, and its device is broken from
 * then on, as on a GPU. Which thread it was is found by running its block once more,
 * thread by thread.
 */
#define _GNU_SOURCE
#include "fault.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf out;
static struct fault {
    const char *address, *instruction;
    int signal;
    bool told; // the address; the processor does not tell one that is not aligned
} fault;

static const char *instruction_of(const void *context) {
#if defined(__x86_64__)
    return (const char *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const char *)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

static void caught(int number, siginfo_t *info, void *context) {
    fault = (struct fault){info->si_addr, instruction_of(context), number,
                           info->si_code != SI_KERNEL &&
                               (number != SIGBUS || info->si_code != BUS_ADRALN)};
    siglongjmp(out, 1);
}

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { SIGNALS = sizeof signals / sizeof *signals };

static bool guarded(void (*run)(const struct launch *, struct kernel_where *),
                    const struct launch *launch, struct kernel_where *where) {
    struct sigaction mine = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    struct sigaction before[SIGNALS];
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &mine, &before[i]);
    bool well = sigsetjmp(out, 1) == 0;
    if (well)
        run(launch, where);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    return well;
}

/* "saxpy.cu:12", if the program has lines; otherwise "". */
static void line_of(const char *instruction, char *line, size_t size) {
    Dl_info in;
    char command[4800];
    line[0] = '\0';
    if (!dladdr(instruction, &in) || !in.dli_fname)
        return;
    size_t offset = (size_t)(instruction - (const char *)in.dli_fbase);
    int n = snprintf(command, sizeof command, "addr2line -s -e '%s'", in.dli_fname);
    // Some instructions belong to no line: then to that of one shortly before.
    for (size_t back = 0; back < 64 && back < offset && n < (int)sizeof command;
         back += 4)
        n += snprintf(command + n, sizeof command - (size_t)n, " 0x%zx", offset - back);
    FILE *pipe = n < (int)sizeof command ? popen(command, "r") : NULL;
    if (!pipe)
        return;
    while (fgets(line, (int)size, pipe)) {
        line[strcspn(line, "\n (")] = '\0';
        if (line[0] != '?' && line[strlen(line) - 1] != '?')
            break;
        line[0] = '\0';
    }
    pclose(pipe);
}

static void buffer_of(const char *address, char *words, size_t size) {
    const struct memory *memory = memory_near(address);
    const bool freed = memory_was_freed(address);
    if (!memory || freed) {
        snprintf(words, size,
                 freed ? "the buffer that was there has been freed"
                       : "no buffer is near");
        return;
    }
    const char *end = memory->user + memory->bytes;
    if (address >= end)
        snprintf(words, size,
                 "%zu bytes past the end of the nearest buffer, of %zu bytes",
                 (size_t)(address - end), memory->bytes);
    else
        snprintf(words, size, "%zu bytes before the nearest buffer, of %zu bytes",
                 (size_t)(memory->user - address), memory->bytes);
}

static void say(const struct launch *launch, const struct kernel_where *where,
                bool thread_known) {
    char line[256], buffer[128], what[80], where_to[64] = "", thread[64] = "";
    line_of(fault.instruction, line, sizeof line);
    const char *address = memory_user_address(fault.address);
    const bool shared = fault.address >= __kernel_dynamic &&
                        fault.address < __kernel_dynamic + KERNEL_DYNAMIC;
    if (thread_known)
        snprintf(thread, sizeof thread, ", thread (%u,%u,%u)", where->thread[0],
                 where->thread[1], where->thread[2]);
    buffer_of(address, buffer, sizeof buffer);
    if (fault.signal == SIGFPE)
        snprintf(what, sizeof what, "divides an integer by zero");
    else if (fault.signal == SIGILL)
        snprintf(what, sizeof what, "calls __trap()");
    else if (!fault.told)
        snprintf(what, sizeof what,
                 "uses an address that is not aligned to its type, or is no address");
    else if (shared)
        snprintf(what, sizeof what,
                 "uses shared memory past the %zu bytes that its launch asked for",
                 launch->shared);
    else
        snprintf(what, sizeof what, "uses memory that is in no buffer");
    if ((fault.signal == SIGSEGV || fault.signal == SIGBUS) && fault.told && !shared)
        snprintf(where_to, sizeof where_to, ", address %p", (const void *)address);
    fflush(stdout);
    fprintf(stderr, "kernel %s %s: block (%u,%u,%u)%s%s%s%s%s%s\n",
            kernel_words(launch->kernel), what, where->block[0], where->block[1],
            where->block[2], thread, where_to, line[0] ? ", at " : "", line,
            where_to[0] ? "; " : "", where_to[0] ? buffer : "");
}

char __kernel_dynamic[KERNEL_DYNAMIC] __attribute__((aligned(65536)));
static size_t shared_opened = KERNEL_DYNAMIC;
enum { UNTOUCHED = 0xa5 };

/* What follows the shared memory that a launch asks for leads nowhere. On its last page
 * lie bytes that nobody is to write. */
static void open_shared(size_t asked) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (asked + page - 1) / page * page;
    if (bytes != shared_opened &&
        (mprotect(__kernel_dynamic, bytes, PROT_READ | PROT_WRITE) ||
         mprotect(__kernel_dynamic + bytes, KERNEL_DYNAMIC - bytes, PROT_NONE)))
        fail("shared memory has no end");
    shared_opened = bytes;
    memset(__kernel_dynamic + asked, UNTOUCHED, bytes - asked);
}

static bool shared_kept(size_t asked) {
    while (asked < shared_opened && (unsigned char)__kernel_dynamic[asked] == UNTOUCHED)
        asked++;
    return asked == shared_opened;
}

bool fault_guard(const struct runner *runner, const struct launch *launch,
                 struct kernel_where *where) {
    open_shared(launch->shared);
    if (guarded(runner->all, launch, where)) {
        if (shared_kept(launch->shared))
            return true;
        fflush(stdout);
        fprintf(
            stderr,
            "kernel %s writes shared memory past the %zu bytes that its launch asked for\n",
            kernel_words(launch->kernel), launch->shared);
        return false;
    }
    const struct fault first = fault;
    bool known = !runner->one_by_one || !guarded(runner->one_by_one, launch, where);
    if (known)
        runner->thread_now(where);
    else
        fault = first;
    say(launch, where, known);
    return false;
}

void fault_stuck(unsigned shuffling, unsigned at_barrier) {
    fail("in a kernel %u threads wait in a warp's operation (a shuffle or a vote), and"
         " %u at a barrier: not all threads of its mask come to it",
         shuffling, at_barrier);
}

void fault_apart(const struct launch *launch, const struct kernel_where *where,
                 unsigned together, unsigned threads) {
    fail(
        "kernel %s, block (%u,%u,%u): %u of %u threads are in a barrier session's sync,"
        " the others are elsewhere or have ended.\n"
        "Every thread of a block comes to each sync: it stands after no return, and in no"
        " if that only some of them take.",
        kernel_words(launch->kernel), where->block[0], where->block[1], where->block[2],
        together, threads);
}

void fault_no_barrier(const struct launch *launch, const struct kernel_where *where,
                      unsigned number, unsigned barriers) {
    fail("kernel %s, block (%u,%u,%u): a session of barrier %u, but lsaBarrierCount is"
         " %u.\n"
         "Each block needs a barrier of its own. They are counted from 0.",
         kernel_words(launch->kernel), where->block[0], where->block[1], where->block[2],
         number, barriers);
}
