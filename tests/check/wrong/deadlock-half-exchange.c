// The first rank and the last exchange data, each with a send and a receive in one group,
// and the last has forgotten to receive. Their first group connects the two, and waits
// for both halves: neither gets anything. NCCL 2.32.3 gives up: "Message truncated".
// rank: 1
// alone: a call returns 3
// expect: NCCL CHECK: deadlock: ranks wait for one another
// expect: rank 0 on @host: waits in ncclGroupEnd at @group for ncclSend(count 4,
//     ncclInt32, to rank @last) at @send
// expect: Hint: each ncclSend needs an ncclRecv on the other side
#include "../check.h"

#include <stdbool.h>

int main(void) {
    start();
    int *in = device_ints(4, -1);
    int *out = device_ints(4, rank);
    int last = nranks - 1;
    bool receives = rank == 0;
#ifdef FIXED
    receives = true;
#endif
    if (rank == 0 || rank == last) {
        MUST(ncclGroupStart());
        MUST(ncclSend(out, 4, ncclInt32, last - rank, comm, stream)); // @send
        if (receives)
            MUST(ncclRecv(in, 4, ncclInt32, last - rank, comm, stream));
        MUST(ncclGroupEnd()); // @group
        MUST(cudaStreamSynchronize(stream));
    }
    MUST(cudaFree(in));
    MUST(cudaFree(out));
    finish();
    return 0;
}
