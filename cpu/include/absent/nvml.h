#error "nvml.h: the CPU build has no NVML (cpu/README.md says what it has)"
