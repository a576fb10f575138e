// Rank 1 gives its all-reduce another number of channels. "The same configuration must be
// set on every rank; NCCL validates it only locally" (nccl.h of NCCL 2.32).
// rank: 1
// alone: exit code 0
// expect: NCCL CHECK: mismatch: the ranks give different configurations at operation 2 on
//     communicator 1
// expect: rank 0 on @host: ncclAllReduce(count 4, ncclInt32, ncclSum)
//     at @config, maxCTAs 4
// expect: rank 1 on @host: ncclAllReduce(count 4, ncclInt32, ncclSum)
//     at @config, maxCTAs 2
// expect: Hint: what ncclCollConfig_t holds must be the same on every rank
#include "../check.h"

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    // What is as it was set by NCCL is as good as none.
    MUST(ncclAllReduceConfig(buf, buf, 4, ncclInt32, ncclSum, comm, stream,
                             rank == 1 ? &config : NULL));
    config.maxCTAs = 4;
#ifndef FIXED
    if (rank == 1)
        config.maxCTAs = 2;
#endif
    // @config
    MUST(ncclAllReduceConfig(buf, buf, 4, ncclInt32, ncclSum, comm, stream, &config));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks * nranks);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
