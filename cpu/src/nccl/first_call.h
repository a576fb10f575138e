/* first_call.h: the first call between ranks. NCCL connects them then, and a call on a
 * communicator that blocks waits on the host until the others have come to theirs. */
#ifndef CPU_FIRST_CALL_H
#define CPU_FIRST_CALL_H

#include "data/exchange.h"

/* Tells the other ranks that this one has come to the calls of a list. */
void first_call_begin(const struct call *calls);
/* Whether they have, too; or the communicator's work was dropped. */
bool first_call_over(const void *comm);

#endif
