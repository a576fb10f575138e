/* cuda_aware.h: an MPI that takes device memory. */
#ifndef CPU_CUDA_AWARE_H
#define CPU_CUDA_AWARE_H

#include "base/base.h"

#pragma GCC visibility push(default)
/* For whoever stands in front of MPI: whether it takes device memory
 * (CPU_MPI=cuda-aware), and where the bytes of a buffer are that a call of MPI is given.
 */
bool standin_cuda_aware(void);
void *standin_mpi_buffer(const void *buffer);
/* As Open MPI has it (mpi-ext.h). */
int MPIX_Query_cuda_support(void);
#pragma GCC visibility pop

#endif
