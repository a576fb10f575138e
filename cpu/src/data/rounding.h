/*
 * rounding.h: numbers are added up as on a GPU, whatever the program has told its own
 * processor (fesetround, feenableexcept).
 *
 * CUDA C++ Programming Guide, "Floating-Point Standard": "There is no dynamically
 * configurable rounding mode", and "all operations behave as if the IEEE-754 exceptions
 * are always masked".
 */
#ifndef CPU_ROUNDING_H
#define CPU_ROUNDING_H

#include <fenv.h>

static inline void arithmetic_of_the_program(const fenv_t *its) {
    fesetenv(its);
}

/* For the rest of the scope. */
#define AS_ON_A_GPU                                                      \
    __attribute__((cleanup(arithmetic_of_the_program))) fenv_t programs; \
    fegetenv(&programs);                                                 \
    fesetenv(FE_DFL_ENV)

#endif
