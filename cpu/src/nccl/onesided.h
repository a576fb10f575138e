/* onesided.h: puts, signals, and waits for signals. */
#ifndef CPU_ONESIDED_H
#define CPU_ONESIDED_H

#include "data/exchange.h"

/* For whoever stands in front of the library: a number that a communicator has on all its
 * ranks, and how large rank `peer`'s part of a window is; 0: that is not known. */
#pragma GCC visibility push(default)
uint64_t standin_comm_id(const void *comm);
size_t standin_window_bytes(const void *comm, const void *window, int peer);
uint64_t standin_arrived(void *);
#pragma GCC visibility pop

void onesided_start(void);
/* Whether the part of the peer's window is there. */
bool onesided_usable(const struct call *call);
bool onesided_advance(struct call *call, double now); // now: by the modelled clock

#endif
