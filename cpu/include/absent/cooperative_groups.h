#error "cooperative_groups.h: not among what kernels may use here (see kernels/README.md)"
