/* cublas_api.h of the CPU build: what there is of it stands in cublas_v2.h. */
#include "cublas_v2.h"
