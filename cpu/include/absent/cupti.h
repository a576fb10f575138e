#error "cupti.h: the CPU build has no CUPTI (cpu/README.md says what it has)"
