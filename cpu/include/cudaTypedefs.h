#error "cudaTypedefs.h: the CPU build has no driver functions by their versions (cpu/README.md says what it has)"
