/* agreement.c has the calls that the ranks of a communicator make together. They are
 * operations on the communicator's own stream, one after the other. */
#include "nccl/agreement.h"

struct agreement_op {
    struct op op;
    struct call *call;
    struct ncclComm *made;
    void (*over)(struct call *call, struct ncclComm *made);
    unsigned era;
};

static bool step(struct op *op) {
    struct agreement_op *mine = (struct agreement_op *)op;
    struct call *call = mine->call;
    bool dropped = call->comm->aborted || call->comm->era != mine->era;
    call->facts.start = op->start;
    bool further = !dropped && call_advance(call);
    op->done = dropped || call->state == CALL_DONE;
    if (call->start > op->start)
        op->start = call->start;
    if (op->done && mine->made)
        mine->made->born = op->start;
    if (op->done && call->state != CALL_DONE && mine->made)
        comm_fail(mine->made, ncclInvalidUsage,
                  "the communicator was given up meanwhile");
    else if (op->done && call->state == CALL_DONE && mine->over)
        mine->over(call, mine->made);
    return further || op->done;
}

static void drop(struct op *op) {
    struct agreement_op *mine = (struct agreement_op *)op;
    mine->call->comm->meetings--;
    call_release(mine->call);
    if (mine->made)
        comm_release(mine->made);
}

void agreement_begin(struct call *call, struct ncclComm *made,
                     void (*over)(struct call *call, struct ncclComm *made)) {
    struct agreement_op *mine = (struct agreement_op *)op_create(sizeof *mine, step);
    mine->op.drop = drop;
    mine->call = call;
    mine->over = over;
    mine->era = call->comm->era;
    mine->made = made;
    if (made)
        comm_hold(made);
    call_number(call);
    call->comm->meetings++;
    op_enqueue(&mine->op, call->comm->own);
}
