/* connect.h: the first call between ranks. NCCL connects them then, and a call on a
 * communicator that blocks waits on the host until the others have come to theirs. */
#ifndef CPU_CONNECT_H
#define CPU_CONNECT_H

#include "carry.h"

/* Tells the other ranks that this one has come to the calls of a list. */
void connect_begin(const struct call *calls);
/* Whether they have, too; or the communicator's work was dropped. */
bool connect_over(const void *comm);

#endif
