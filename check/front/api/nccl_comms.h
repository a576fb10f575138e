/*
 * nccl_comms.h: the communicators of NCCL, for the functions of CUDA.
 */
#ifndef NCCL_COMMS_H
#define NCCL_COMMS_H

#include "handles.h"

bool group_is_open(void);                    // of NCCL's calls, in this thread
void comms_stream_gone(cudaStream_t stream); // its calls are on it no more
/* cudaDeviceReset: those on the device are gone. */
void comms_reset(struct judge *j, int device, struct judge_at at);
/* Python's program uses CUDA. Gives up if its PyTorch has an NCCL that nobody can see. */
void nccl_may_be_hidden(void);

#endif
