#error "cudnn.h: the CPU build has no cuDNN (cpu/README.md says what it has)"
