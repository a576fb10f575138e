/* device_launch_parameters.h of the CPU build: there are no kernels, so no parameters. */
#ifndef DEVICE_LAUNCH_PARAMETERS_H_CPU
#define DEVICE_LAUNCH_PARAMETERS_H_CPU
#include "cuda_runtime.h"
#endif
