/* nvToolsExt.h of the CPU build. */
#ifndef NVTOOLSEXT_H_CPU
#define NVTOOLSEXT_H_CPU
#include "nvtx3/nvToolsExt.h"
#endif
