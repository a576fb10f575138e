#error "cusparse_v2.h: the CPU build has no cuSPARSE (cpu/README.md says what it has)"
