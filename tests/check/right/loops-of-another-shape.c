// Six equal calls on every rank: from one loop, from two nested ones, or written out.
// What counts is the sequence of calls, not the line or the loop they come from.
#include "../check.h"

static void add_up(int *buf) {
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
}

int main(void) {
    start();
    int *buf = device_ints(4, rank);
    if (rank % 3 == 0) {
        for (int i = 0; i < 6; i++) {
            add_up(buf);
        }
    } else if (rank % 3 == 1) {
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 3; j++) {
                MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
            }
        }
    } else {
        int left = 5;
        add_up(buf);
        while (left-- > 0) {
            MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclMax, comm, stream));
        }
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks - 1);
    MUST(cudaFree(buf));
    finish();
    return 0;
}
