#error "mma.h: the CPU build has no kernels (see cpu/README.md)"
