/* vector_functions.h of the CPU build: make_float4 and its kind stand in vector_types.h.
 */
#ifndef VECTOR_FUNCTIONS_H_CPU
#define VECTOR_FUNCTIONS_H_CPU
#include "vector_types.h"
#endif
