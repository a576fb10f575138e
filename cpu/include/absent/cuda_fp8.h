#error "cuda_fp8.h: the CPU build has no 8-bit floats (cpu/README.md says what it has)"
