#error "cufftw.h: the CPU build has no cuFFT (cpu/README.md says what it has)"
