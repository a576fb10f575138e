/* hostfunc.h: the program's own functions, called by a stream. */
#ifndef CPU_HOSTFUNC_H
#define CPU_HOSTFUNC_H

#include "cuda/queue.h"

struct op *hostfunc_op(cudaHostFn_t function, void *argument);

/* Whether the calling thread runs such a function: it must not call CUDA or NCCL. */
bool in_host_function(void);

#endif
