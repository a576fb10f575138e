/*
 * known.h: what the host knows to have happened.
 */
#ifndef KNOWN_H
#define KNOWN_H

#include "order/clocks.h"

/* It has waited, or was told, and knows what the clock covers. */
void known_grows(struct judge *j, const struct clock *clock);
/* What operations use of the host's memory may have become less. */
void known_changed(struct judge *j);

#endif
