#error "cudaTypedefs.h: the CPU build has no driver API (cpu/README.md says what it has)"
