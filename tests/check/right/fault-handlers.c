// A program has handlers of its own for SIGSEGV: one for pages that it makes ready at the
// first touch, as a garbage collector does, one that says that it crashed. Beside them
// the host works on one half of a page of pinned memory, and a copy on the other.
#define _GNU_SOURCE
#include "../check.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096, HALF = PAGE / 2 / sizeof(int) };

static char *page; // closed until it is touched
static volatile int touched, crashed, traps;
static sigjmp_buf back;

static void opens(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    char *at = info->si_addr;
    if (at < page || page + PAGE <= at)
        _exit(9);
    touched++;
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void jumps(int number) {
    (void)number;
    crashed++;
    siglongjmp(back, 1);
}

static void counts(int number) {
    (void)number;
    traps++;
}

static void use_pinned(void) {
    int *pinned, *buf = device_ints(HALF, rank);
    MUST(cudaMallocHost((void **)&pinned, PAGE));
    for (int i = 0; i < 3; i++) {
        MUST(cudaMemcpyAsync(pinned, buf, HALF * sizeof(int), cudaMemcpyDeviceToHost,
                             stream));
        pinned[HALF] = i;
        page[1] = (char)i;
        mprotect(page, PAGE, PROT_NONE);
        EXPECT(pinned[HALF], i);
        MUST(cudaStreamSynchronize(stream));
        EXPECT(pinned[HALF - 1], rank);
    }
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(buf));
}

int main(void) {
    stack_t apart = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16},
            none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_sigaction = opens,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK},
                     now;
    sigaltstack(&apart, NULL);
    MUST(sigaction(SIGSEGV, &action, NULL)); // before CUDA, and MPI, are there
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start();
    use_pinned();
    EXPECT(touched, 3);

    MUST(sigaction(SIGSEGV, NULL, &now));
    EXPECT(now.sa_sigaction == opens, 1);
    action.sa_flags = SA_SIGINFO;
    MUST(sigaction(SIGSEGV, &action, NULL)); // and behind
    use_pinned();
    EXPECT(touched, 6);

    EXPECT(signal(SIGSEGV, jumps) == (sighandler_t)opens, 1);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            page[2] = 1;
    EXPECT(crashed, 3);
    EXPECT(signal(SIGTRAP, counts) == SIG_DFL, 1);
    EXPECT(signal(SIGUSR1, counts) == SIG_DFL, 1);
    raise(SIGTRAP);
    raise(SIGUSR1);
    EXPECT(traps, 2);
    EXPECT(signal(SIGSEGV, SIG_IGN) == jumps, 1);
    raise(SIGSEGV);
    EXPECT(signal(SIGSEGV, SIG_DFL) == SIG_IGN, 1);
    munmap(page, PAGE);
    sigaltstack(&none, NULL);
    free(apart.ss_sp);
    finish();
    return 0;
}
