#error "cublas.h: the CPU build has the new cuBLAS only, cublas_v2.h"
