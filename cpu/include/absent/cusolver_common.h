#error "cusolver_common.h: the CPU build has no cuSOLVER (cpu/README.md says what it has)"
