// A process that is forked off, and ends before the job does: none of its business.
#include "../check.h"

#include <sys/wait.h>

int main(void) {
    start();
    int *buf = device_ints(4, 1);
    MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, comm, stream));
    pid_t child = fork();
    if (child == 0)
        exit(0);
    int status;
    waitpid(child, &status, 0);
    EXPECT(status, 0);
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buf, 4, nranks);
    MUST(cudaFree(buf));
    finish();
    if (rank == 0)
        puts("OK");
    return 0;
}
