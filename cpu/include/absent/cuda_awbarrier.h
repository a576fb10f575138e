#error "cuda_awbarrier.h: the CPU build has no kernels (see cpu/README.md)"
