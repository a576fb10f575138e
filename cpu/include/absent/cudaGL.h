#error "cudaGL.h: the CPU build has no OpenGL (cpu/README.md says what it has)"
