/* fault.h: kernels that use addresses which lead nowhere. */
#ifndef FAULT_H
#define FAULT_H

#include "kernels.h"

/* How kernels of one kind are run. */
struct runner {
    void (*all)(const struct launch *, struct kernel_where *);
    /* NULL: `all` knows the thread that went wrong. */
    void (*one_by_one)(const struct launch *, struct kernel_where *);
    void (*thread_now)(struct kernel_where *where); // puts in the thread that runs
};
/* Runs the kernel; false: it used such an address. Says which, by which thread, in which
 * line, and which buffer is next to it. */
bool fault_guard(const struct runner *runner, const struct launch *launch,
                 struct kernel_where *where);
/* Threads wait in a way in which nobody can go on. */
_Noreturn void fault_stuck(unsigned shuffling, unsigned at_barrier);
/* Of the threads of a block only some come to a step of a barrier session. */
_Noreturn void fault_apart(const struct launch *launch, const struct kernel_where *where,
                           unsigned together, unsigned threads);
_Noreturn void fault_no_barrier(const struct launch *launch,
                                const struct kernel_where *where, unsigned number,
                                unsigned barriers);

#endif
