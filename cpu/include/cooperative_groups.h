#error "cooperative_groups.h: the CPU build has no kernels (cpu/README.md says what it has)"
