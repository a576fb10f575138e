#error "cublasXt.h: the CPU build has no cuBLASXt (cpu/README.md says what it has)"
