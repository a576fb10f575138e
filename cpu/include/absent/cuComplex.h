#error \
    "cuComplex.h: the CPU build has no complex numbers (cpu/README.md says what it has)"
