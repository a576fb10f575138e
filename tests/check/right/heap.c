// Memory of the program's own is given back when nobody needs it any more: by the
// function on the stream that was given it; beside what is registered, on the same page;
// after cudaHostUnregister, and by malloc once more for somebody else; moved before it is
// registered; and in a block that is registered from the beginning of its page on.
#include "../check.h"

#include <stdint.h>
#include <sys/mman.h>

enum { COUNT = 1000, ROUNDS = 100 };
static _Atomic int seen;

static void take(void *note) {
    seen += *(int *)note;
    free(note);
}

static void function_frees(void) {
    for (int i = 0; i < ROUNDS; i++) {
        int *note = malloc(sizeof *note);
        *note = 1;
        MUST(cudaLaunchHostFunc(stream, take, note));
    }
    MUST(cudaStreamSynchronize(stream));
    EXPECT(seen, ROUNDS);
}

static void neighbours(int *buf) {
    size_t bytes = COUNT * sizeof(int);
    for (int i = 0; i < ROUNDS; i++) {
        int *before = malloc(64), *host = malloc(bytes), *behind = malloc(64);
        host = realloc(host, bytes + (size_t)i * 4096);
        MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
        MUST(cudaMemcpyAsync(buf, host, bytes, cudaMemcpyHostToDevice, stream));
        free(before);
        free(behind);
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaHostUnregister(host));
        free(host);
    }
}

static void from_the_page_on(void) {
    char *first = malloc(100), *own = malloc(8192);
    uintptr_t page = (uintptr_t)own / 4096 * 4096;
    MUST(cudaHostRegister((void *)page, 8192, cudaHostRegisterDefault));
    free(first);
    MUST(cudaHostUnregister((void *)page));
    free(own);
    char *map =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(cudaHostRegister(map, 4096, cudaHostRegisterDefault));
    MUST(munmap(map + 4096, 4096));
    MUST(cudaHostUnregister(map));
    MUST(munmap(map, 4096));
}

int main(void) {
    start();
    int *buf = device_ints(COUNT, 1);
    function_frees();
    neighbours(buf);
    from_the_page_on();
    MUST(cudaFree(buf));
    finish();
    return 0;
}
