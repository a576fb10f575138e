/* cuda_aware.h: an MPI that takes device memory. */
#ifndef CPU_CUDA_AWARE_H
#define CPU_CUDA_AWARE_H

#include "base/base.h"

#pragma GCC visibility push(default)
/* As Open MPI has it (mpi-ext.h). */
int MPIX_Query_cuda_support(void);
#pragma GCC visibility pop

#endif
