/* number.h: data types and reductions. */
#ifndef CPU_NUMBER_H
#define CPU_NUMBER_H

#include "base/base.h"

enum { PRE_MUL_SUM = 1000 }; // beside ncclRedOp_t: a reduction that the program made

size_t type_size(int type);
int carry_type(int type); // what is added up: float for the types narrower than that
/* Half and bfloat16. */
float number_widen(int type, uint16_t bits);
uint16_t number_narrow(int type, float value);
/* What one rank brings to a reduction, and what comes out of it. */
void to_carry(void *out, const void *in, size_t n, int type, int redop,
              const void *scalar);
void from_carry(void *out, const void *in, size_t n, int type, int redop, int nranks);
void reduce_into(void *total, const void *more, size_t n, int carry, int redop);

#endif
