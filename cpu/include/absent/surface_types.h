#error \
    "surface_types.h: the CPU build has no arrays and no textures (cpu/README.md says what it has)"
