#error "nvshmem.h: the CPU build has no NVSHMEM (cpu/README.md says what it has)"
