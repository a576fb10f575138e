/* device_functions.h of the CPU build: what there is of it stands in cuda_runtime.h. */
#include "cuda_runtime.h"
