/* agreement.h: calls that the ranks of a communicator make together, on no stream. */
#ifndef CPU_AGREEMENT_H
#define CPU_AGREEMENT_H

#include "data/exchange.h"

/* Tells the others call->told. When all have come, over(call, made) is called, unless it
 * is NULL; call->payloads has what each of them told. `made`: a communicator that comes
 * of it, or NULL. */
void agreement_begin(struct call *call, struct ncclComm *made,
                     void (*over)(struct call *call, struct ncclComm *made));
/* What rank r told. */
static inline const int64_t *agreement_told(const struct call *call, int r) {
    return (const int64_t *)(const void *)call->payloads + CALL_TOLD * r;
}

#endif
