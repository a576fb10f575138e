/* onesided.h: puts, signals, and waits for signals. */
#ifndef CPU_ONESIDED_H
#define CPU_ONESIDED_H

#include "carry.h"

void onesided_start(void);
/* Whether the part of the peer's window is there. */
bool onesided_usable(const struct call *call);
bool onesided_advance(struct call *call, double now); // now: by the modelled clock

#endif
