#error "cublas.h: the CPU build has no old cuBLAS; cublas_v2.h has the new one (cpu/README.md says what it has)"
