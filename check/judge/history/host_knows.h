/*
 * host_knows.h: what the host knows to have happened.
 */
#ifndef HOST_KNOWS_H
#define HOST_KNOWS_H

#include "base/clock.h"

/* It has waited, or was told, and knows what the clock covers. */
void host_learns(struct judge *j, const struct clock *clock);
/* What operations use of the host's memory may have become less. */
void host_memory_changed(struct judge *j);

#endif
