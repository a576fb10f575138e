/*
 * first_call.c has the first call between ranks. What waits for what was seen on two
 * H100, with NCCL 2.28.3 and 2.32.3: the first collective of a communicator for all its
 * ranks, and the first send for its receive, also after collectives. What NCCL makes of
 * sends and receives (all-to-all, gather, scatter) connects as these do.
 */
#include "nccl/first_call.h"

enum { COLLECTIVE = 1, SENDS = 2, RECEIVES = 4 };

static void tell(struct ncclComm *comm, int peer, int what) {
    if (peer == comm->rank || comm->told[peer] & what)
        return;
    comm->told[peer] |= (unsigned char)what;
    struct facts facts = {.kind = CALL_CONNECT, .to = peer, .root = what};
    exchange_tell(comm, &facts, NULL, 0);
}

/* What the call needs of the way between this rank and rank r. */
static int ways(const struct call *call, int r) {
    const struct facts *f = &call->facts;
    bool is_root = f->rank == f->root, with_root = r == f->root;
    switch (f->kind) {
    case CALL_SEND: return with_root ? SENDS : 0;
    case CALL_RECV: return with_root ? RECEIVES : 0;
    case CALL_ALL_TO_ALL: return SENDS | RECEIVES;
    case CALL_GATHER: return is_root ? RECEIVES : with_root ? SENDS : 0;
    case CALL_SCATTER: return is_root ? SENDS : with_root ? RECEIVES : 0;
    default: return one_sided(f->kind) ? 0 : COLLECTIVE;
    }
}

void first_call_begin(const struct call *calls) {
    for (const struct call *call = calls; call; call = call->next)
        for (int r = 0; r < call->comm->nranks; r++)
            for (int way = COLLECTIVE; way <= RECEIVES; way *= 2)
                if (ways(call, r) & way)
                    tell(call->comm, r, way);
}

bool first_call_over(const void *argument) {
    const struct ncclComm *comm = argument;
    if (comm->aborted || comm->revoked)
        return true;
    for (int r = 0; r < comm->nranks; r++) {
        int told = comm->told[r], came = comm->came[r];
        if ((told & COLLECTIVE && !(came & COLLECTIVE)) ||
            (told & SENDS && !(came & RECEIVES)) || (told & RECEIVES && !(came & SENDS)))
            return false;
    }
    return true;
}
