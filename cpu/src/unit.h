/* unit.h: an operation of NCCL in a stream. */
#ifndef CPU_UNIT_H
#define CPU_UNIT_H

#include "carry.h"

/* Those of the calls that are on the communicator of the first one become one operation
 * and are queued; returns the rest. */
struct call *unit_launch(struct call *calls);
/* How long they take by the modelled clock, in seconds; frees them. */
double unit_time(struct call *calls);

#endif
