/* helper.h: a thread that moves things on when the program's own do not. */
#ifndef CPU_HELPER_H
#define CPU_HELPER_H

#include "base/base.h"

/* So many things more (or fewer) wait to be done: `look`, called with the lock held, does
 * what can be done and says whether that was anything. */
void helper_work(int change, bool (*look)(void));
/* The same for what other ranks may ask for, and need not: it is looked at less often. */
void helper_duty(int change, bool (*look)(void));
void helper_looked(void); // the program has looked by itself
/* Whether the thread may run at all: MPI must allow calls from several threads. */
void helper_allow(bool allowed);

#endif
