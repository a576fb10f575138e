/* operation.h: an operation of NCCL in a stream. */
#ifndef CPU_OPERATION_H
#define CPU_OPERATION_H

#include "data/exchange.h"

/* Those of the calls that are on the communicator of the first one become one operation
 * and are queued; returns the rest. */
struct call *operation_launch(struct call *calls);
/* How long they take by the modelled clock, in seconds; frees them. */
double operation_time(struct call *calls);

#endif
