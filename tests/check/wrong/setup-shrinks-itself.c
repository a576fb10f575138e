// All ranks call ncclCommShrink, the one that is to be left out among them.
// rank: 2
// alone: exit code 0
// ranks: 3 4
// expect: NCCL CHECK: setup: ncclCommShrink is called by a rank that it leaves out
// expect: rank @last on @host: ncclCommShrink at @shrink, rank @last of the @n ranks of
//     communicator 1
#include "../check.h"

int main(void) {
    start();
    use_comm(comm);
    int last = nranks - 1, out[] = {last};
    ncclComm_t rest = NULL;
#ifdef FIXED
    if (rank != last)
#endif
        ncclCommShrink(comm, out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT); // @shrink
    if (rest)
        MUST(ncclCommDestroy(rest));
    finish();
    return 0;
}
