#error "cooperative_groups.h: the CPU build has no kernels (see cpu/README.md)"
