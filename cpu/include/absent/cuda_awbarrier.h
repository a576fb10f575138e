#error "cuda_awbarrier.h: not among what kernels may use here (see kernels/README.md)"
