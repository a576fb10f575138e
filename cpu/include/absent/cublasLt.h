#error "cublasLt.h: the CPU build has no cuBLASLt (cpu/README.md says what it has)"
