/*
 * cuda_graphs.h: the graphs of CUDA.
 */
#ifndef CUDA_GRAPHS_H
#define CUDA_GRAPHS_H

#include "judge.h"

void graphs_reset(struct judge *j); // cudaDeviceReset: nobody destroys them any more

#endif
