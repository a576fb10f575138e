/* cuComplex.h of the CPU build: complex numbers, as CUDA names them. */
#ifndef CU_COMPLEX_H_
#define CU_COMPLEX_H_

#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CU_COMPLEX_CPU __attribute__((unused)) static inline
CU_COMPLEX_CPU cuFloatComplex make_cuFloatComplex(float r, float i) {
    return make_float2(r, i);
}
CU_COMPLEX_CPU cuComplex make_cuComplex(float r, float i) {
    return make_float2(r, i);
}
CU_COMPLEX_CPU cuDoubleComplex make_cuDoubleComplex(double r, double i) {
    return make_double2(r, i);
}
CU_COMPLEX_CPU float cuCrealf(cuFloatComplex x) {
    return x.x;
}
CU_COMPLEX_CPU float cuCimagf(cuFloatComplex x) {
    return x.y;
}
CU_COMPLEX_CPU double cuCreal(cuDoubleComplex x) {
    return x.x;
}
CU_COMPLEX_CPU double cuCimag(cuDoubleComplex x) {
    return x.y;
}
#undef CU_COMPLEX_CPU

#endif
