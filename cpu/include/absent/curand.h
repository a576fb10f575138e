#error "curand.h: the CPU build has no cuRAND (cpu/README.md says what it has)"
