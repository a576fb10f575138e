#error "cuda_fp4.h: the CPU build has no 4-bit floats (cpu/README.md says what it has)"
