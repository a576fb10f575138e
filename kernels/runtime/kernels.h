/*
 * kernels.h: what cpu-nvcc's code and the runtime know of each other.
 *
 * device.pl writes these structs as LLVM's intermediate representation: a change here is
 * a change there.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include "cuda/device.h"
#include "cuda/queue.h"

/* Where a thread is: the numbers that kernels ask for (__kernel_index), and for kernels
 * whose threads are a loop from which thread to which it goes. */
struct kernel_where {
    unsigned grid[3], dims[3], block[3], thread[3], end[3];
};

enum { KERNEL_WAITS = 1, KERNEL_ELSEWHERE = 2, KERNEL_FLAT = 4, KERNEL_FIRST_LAST = 8 };

struct kernel_code {
    const char *name;
    /* A loop over the threads of a block; of a kernel that waits: starts a thread. */
    void *run;
    /* A bit for each argument: the first thread uses the first element that it points to,
     * for certain. */
    uint64_t (*first)(void **arguments);
    const size_t *sizes; // of each argument
    const char *uses;    // for each argument a letter: see letters() in device.pl
    size_t shared;       // bytes of __shared__ variables
    unsigned narguments;
    unsigned flags; // KERNEL_ELSEWHERE: it finds pointers in memory; KERNEL_FLAT: the
                    // blocks of a row may be one loop; KERNEL_FIRST_LAST: the first
                    // thread of a block runs last
};

struct kernel_module { // of one compiled file
    const char *id;
    const struct kernel_code *codes;
    size_t ncodes;
    const struct kernel_variable {
        const char *name;
        void *at;
        size_t managed; // the host has it, too: 1
    } * variables;
    size_t nvariables;
    struct kernel_module *next;
};

/* Called by compiled code. */
#pragma GCC visibility push(default)
void __kernel_module(struct kernel_module *module);
/* A thread is about to rest; kind KERNEL_OVER: it has ended; KERNEL_OTHERS: it looks for
 * what another process writes, and did not find it; KERNEL_ACTIVE: it asks who else is
 * there, at the place that is the mask. */
enum { KERNEL_OVER, KERNEL_BARRIER, KERNEL_WARP, KERNEL_OTHERS, KERNEL_ACTIVE = 6 };
void __kernel_waits(unsigned kind, unsigned mask);
void *__kernel_frame(size_t bytes); // for a thread that can rest
/* At KERNEL_BARRIER `mask` is 0 for __syncthreads, and 1 to 3 for arrive, wait and the
 * end of a barrier session: to these all threads of a block come. */
_Noreturn void __kernel_no_barrier(unsigned number, unsigned barriers); // too few of them
/* What threads give one another at KERNEL_WARP: `got` is what was given. */
extern uint64_t __kernel_given[1024], __kernel_got[1024];
/* The shared memory that launches ask for. */
enum { KERNEL_DYNAMIC = 256 << 10 };
extern char __kernel_dynamic[KERNEL_DYNAMIC];
#pragma GCC visibility pop

struct kernel { // as the host knows it
    const void *stub;
    const struct kernel_code *code;
    struct kernel_module *module;
    size_t dynamic; // bytes of shared memory that a launch may ask for
    const char *words;
};
const char *kernel_words(struct kernel *kernel); // "saxpy<float>"; stays
struct kernel *kernel_of(const void *stub);      // NULL: there is none
/* Managed variables get what the host has written, or the host what kernels have. */
void kernel_managed(const struct kernel_module *module, bool to_host);

struct launch {
    struct kernel *kernel;
    dim3 grid, block;
    size_t shared;
    void **arguments; // where each lies
};
/* Runs all threads. KERNEL_BROKE: one of them used an address that leads nowhere, which
 * was said. KERNEL_RESTS: it is to be run further, since some wait for other processes.
 */
enum kernel_end { KERNEL_ENDED, KERNEL_BROKE, KERNEL_RESTS };
enum kernel_end kernel_run(const struct launch *launch);
void kernel_forget(const struct launch *launch); // it will not be run further

#endif
