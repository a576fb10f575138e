/* builtin_types.h of the CPU build: the types stand in cuda_runtime.h. */
#ifndef BUILTIN_TYPES_H_CPU
#define BUILTIN_TYPES_H_CPU
#include "cuda_runtime.h"
#endif
