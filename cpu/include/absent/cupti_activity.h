#error "cupti_activity.h: the CPU build has no CUPTI (cpu/README.md says what it has)"
