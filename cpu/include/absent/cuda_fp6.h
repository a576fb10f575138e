#error "cuda_fp6.h: the CPU build has no 6-bit floats (cpu/README.md says what it has)"
