/* puts.h: puts, signals, and waits for signals. */
#ifndef CPU_PUTS_H
#define CPU_PUTS_H

#include "data/exchange.h"

void puts_start(void);
/* Whether the part of the peer's window is there. */
bool puts_usable(const struct call *call);
bool puts_advance(struct call *call, double now); // now: by the modelled clock

/* A kernel computes, or no longer does: meanwhile something happens (standin_arrived). */
void puts_kernel_runs(bool runs);

#endif
