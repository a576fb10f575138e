#error "cuda_pipeline.h: not among what kernels may use here (see kernels/README.md)"
