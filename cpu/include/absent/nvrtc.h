#error "nvrtc.h: the CPU build has no NVRTC (cpu/README.md says what it has)"
