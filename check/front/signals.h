#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>

/* The signal goes to this handler from now on; again: if something else has taken it
 * meanwhile. At most three signals. */
void signals_take(int number, void (*handler)(int, siginfo_t *, void *));
/* The handler has found that it is not concerned: as if it were not there. */
void signals_pass_on(int number, siginfo_t *info, void *context);

#endif
