// On rank 1 the checks get no memory once the program has begun. All ranks go on
// unchecked: no report about the collective that rank 0 leaves out of account at the end.
#define _GNU_SOURCE
#include "../check.h"

#include <dlfcn.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static int refusals; // to come

static int refused(void *caller) {
    Dl_info from;
    return refusals > 0 && dladdr(caller, &from) && from.dli_fname &&
           strstr(from.dli_fname, "libnccl-check") && refusals-- > 0;
}

void *calloc(size_t n, size_t bytes) {
    return refused(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes) {
    return refused(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}

int main(void) {
    start();
    int *buffers[200];
    if (rank == 1)
        refusals = 1;
    for (int i = 0; i < 200; i++)
        buffers[i] = device_ints(4, 1);
    MUST(ncclAllReduce(buffers[0], buffers[1], 4, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(buffers[1], 4, nranks);
    sleep(1); // the other rank hears of it
    finish(); // and 200 buffers are left behind
    if (rank == 0)
        puts("OK");
    return 0;
}
