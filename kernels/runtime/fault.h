/* fault.h: kernels that use addresses which lead nowhere. */
#ifndef FAULT_H
#define FAULT_H

#include "kernels.h"

/* Runs `run`; false: it used such an address. Says which, by which thread, in which line,
 * and which buffer is next to it. */
bool fault_guard(void (*run)(const struct launch *, struct kernel_where *),
                 const struct launch *launch, struct kernel_where *where);
/* Threads wait in a way in which nobody can go on. */
_Noreturn void fault_stuck(unsigned shuffling, unsigned at_barrier);

void kernel_one_by_one(const struct launch *launch, struct kernel_where *where);
void kernel_thread_now(const struct launch *launch, struct kernel_where *where);

#endif
