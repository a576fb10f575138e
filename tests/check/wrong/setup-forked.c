// Rank 0 forks a process off to save the result while the job goes on, which takes it
// from the device itself. CUDA cannot be used there: what it saves is nothing.
//
// expect: NCCL CHECK: setup: a process that was forked off after CUDA was called calls
//     cudaMemcpy
//
// expect: rank 0 on @host, in process @any: cudaMemcpy at @copy
// exit: 0
#include "../check.h"

#include <sys/wait.h>

enum { COUNT = 1000 };

static int save(const int *host) {
    FILE *file = fopen("/dev/null", "w");
    size_t written = file ? fwrite(host, sizeof *host, COUNT, file) : 0;
    return !file || fclose(file) != 0 || written != COUNT;
}

int main(void) {
    start();
    int *buf = device_ints(COUNT, 1), host[COUNT] = {0}, status;
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
#ifdef FIXED
    MUST(cudaMemcpy(host, buf, sizeof host, cudaMemcpyDeviceToHost));
#endif
    pid_t child = rank == 0 ? fork() : -1;
    if (child == 0) {
#ifndef FIXED
        cudaMemcpy(host, buf, sizeof host, cudaMemcpyDeviceToHost); // @copy
#endif
        _exit(save(host));
    }
    MUST(ncclAllReduce(buf, buf, COUNT, ncclInt32, ncclMax, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    if (child > 0) {
        waitpid(child, &status, 0);
        EXPECT(status, 0);
    }
    MUST(cudaFree(buf));
    finish();
    return 0;
}
