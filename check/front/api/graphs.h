/*
 * graphs.h: the graphs of CUDA.
 */
#ifndef GRAPHS_H
#define GRAPHS_H

#include "judge.h"

void graphs_reset(struct judge *j); // cudaDeviceReset: nobody destroys them any more

#endif
