/*
 * Memory of one rank that the others open: handles, what is read and written through
 * them, and what is refused: as two H200 do it. And events of several ranks.
 */
#include "tap.h"

#include <stdint.h>
#include <unistd.h>

enum { LAZY = cudaIpcMemLazyEnablePeerAccess };

static int next, previous;
static cudaStream_t stream;

static unsigned char value(int rank, size_t i) {
    return (unsigned char)(rank * 31 + (int)(i % 251) + 1);
}

static void fill(unsigned char *host, int rank, size_t bytes) {
    enum { PERIOD = 251 };
    for (size_t i = 0; i < bytes && i < PERIOD; i++)
        host[i] = value(rank, i);
    for (size_t i = PERIOD; i < bytes; i += PERIOD)
        memcpy(host + i, host, bytes - i < PERIOD ? bytes - i : PERIOD);
}

/* What is on the device at `from` is what `rank` brings. */
static void holds(const void *from, int rank, size_t bytes, const char *what) {
    unsigned char *host = malloc(bytes), *wanted = malloc(bytes);
    memset(host, 0, bytes);
    CUDA(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    fill(wanted, rank, bytes);
    size_t i = 0;
    if (memcmp(host, wanted, bytes) != 0)
        while (host[i] == wanted[i])
            i++;
    expect(host[i] == wanted[i], "%s: byte %zu of %zu is %d, expected %d", what, i, bytes,
           host[i], wanted[i]);
    free(wanted);
    free(host);
}

/* The next rank's handle: what each gives goes to the one before it. */
static cudaIpcMemHandle_t passed(cudaIpcMemHandle_t mine) {
    cudaIpcMemHandle_t theirs;
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, previous, 0, &theirs, sizeof theirs,
                 MPI_BYTE, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return theirs;
}

/* Every rank reads what the next one filled before it made the handle, and writes what
 * the next one then finds. */
static void exchange(size_t bytes) {
    unsigned char *host = malloc(bytes), *mine = NULL, *kept = NULL;
    void *theirs = NULL;
    cudaIpcMemHandle_t handle;
    CUDA(cudaMalloc((void **)&mine, bytes));
    CUDA(cudaMalloc((void **)&kept, bytes));
    fill(host, tap_rank, bytes);
    CUDA(cudaMemcpyAsync(mine, host, bytes, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaIpcGetMemHandle(&handle, mine));
    holds(mine, tap_rank, bytes, "after its handle was made, mine");
    handle = passed(handle);
    if (tap_ranks > 1) {
        CUDA(cudaIpcOpenMemHandle(&theirs, handle, LAZY));
        holds(theirs, next, bytes, "opened, the next rank's");
        CUDA(cudaMemcpyAsync(kept, theirs, bytes, cudaMemcpyDeviceToDevice, stream));
        CUDA(cudaStreamSynchronize(stream));
        holds(kept, next, bytes, "copied, the next rank's");
        MPI_Barrier(MPI_COMM_WORLD);
        fill(host, 2 * tap_ranks + tap_rank, bytes);
        CUDA(cudaMemcpyAsync(theirs, host, bytes, cudaMemcpyDefault, stream));
        CUDA(cudaStreamSynchronize(stream));
        MPI_Barrier(MPI_COMM_WORLD);
        holds(mine, 2 * tap_ranks + previous, bytes, "written by the rank before, mine");
        CUDA(cudaIpcCloseMemHandle(theirs));
        MPI_Barrier(MPI_COMM_WORLD);
        holds(mine, 2 * tap_ranks + previous, bytes, "closed by the other, mine");
    }
    CUDA(cudaFree(kept));
    CUDA(cudaFree(mine));
    free(host);
    point("%zu bytes, read and written by another rank", bytes);
}

static void refusals(void) {
    char *mine, *pinned, *managed, *in_stream, on_host[16];
    void *of_nccl;
    void *opened = NULL;
    cudaIpcMemHandle_t handle, nothing;
    memset(&nothing, 0, sizeof nothing);
    CUDA(cudaMalloc((void **)&mine, 100));
    CUDA(cudaMallocHost((void **)&pinned, 100));
    CUDA(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
    CUDA(cudaMallocAsync((void **)&in_stream, 100, stream));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclMemAlloc(&of_nccl, 100));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(NULL, mine));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, pinned));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, managed));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, in_stream));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, of_nccl));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, on_host));
    CUDA(cudaFreeAsync(in_stream, stream));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclMemFree(of_nccl));
    CUDA(cudaIpcGetMemHandle(&handle, mine));
    CUDA_IS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&opened, handle, LAZY));
    CUDA_IS(cudaErrorDeviceUninitialized, cudaGetLastError());
    CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(NULL, handle, LAZY));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&opened, nothing, LAZY));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(mine));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(NULL));
    CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(on_host));
    expect(opened == NULL, "a refused handle gives an address");
    point("refused: what cudaMalloc has not given, what is no handle, or one's own");

    handle = passed(handle);
    if (tap_ranks > 1) {
        CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&opened, handle, 0));
        CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&opened, handle, 2));
        for (size_t i = 0; i < sizeof handle; i++) {
            cudaIpcMemHandle_t altered = handle;
            altered.reserved[i] ^= 1;
            cudaError_t error = cudaIpcOpenMemHandle(&opened, altered, LAZY);
            if (error == cudaSuccess) // of the bytes that do not count
                CUDA(cudaIpcCloseMemHandle(opened));
            else
                expect(error == cudaErrorInvalidValue, "byte %zu altered: %s", i,
                       cudaGetErrorName(error));
            expect(i > 40 || error != cudaSuccess, "byte %zu altered: accepted", i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    point("refused: other flags, and a handle that was altered");

    if (tap_ranks > 1) {
        char *again = NULL;
        size_t before, after, total;
        cudaIpcMemHandle_t other;
        struct cudaPointerAttributes about;
        CUDA(cudaMemGetInfo(&before, &total));
        CUDA(cudaIpcOpenMemHandle(&opened, handle, LAZY));
        CUDA(cudaMemGetInfo(&after, &total));
        expect(before == after, "opened memory counts as this device's");
        CUDA(cudaIpcOpenMemHandle((void **)&again, handle, LAZY));
        expect(opened == again, "opened twice: two addresses");
        CUDA(cudaPointerGetAttributes(&about, opened));
        expect(about.type == cudaMemoryTypeDevice, "opened: of type %d", about.type);
        CUDA_IS(cudaErrorInvalidValue, cudaFree(opened));
        CUDA_IS(cudaErrorInvalidValue, cudaFreeAsync(opened, stream));
        CUDA_IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&other, opened));
        CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(again + 1));
        CUDA(cudaIpcCloseMemHandle(opened));
        CUDA(cudaMemsetAsync(opened, 1, 100, stream)); // it is still open
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaIpcCloseMemHandle(opened));
        CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(opened));
        CUDA_IS(cudaErrorInvalidValue, cudaMemsetAsync(opened, 1, 100, stream));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    point(
        "opened twice: one address, closed twice; it is not ours to free or to hand on");

    // Freed by its owner, who has other memory now: the handle does not lead there.
    CUDA(cudaFree(mine));
    CUDA(cudaMalloc((void **)&mine, 100));
    cudaIpcMemHandle_t fresh;
    CUDA(cudaIpcGetMemHandle(&fresh, mine));
    MPI_Barrier(MPI_COMM_WORLD);
    if (tap_ranks > 1)
        CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&opened, handle, LAZY));
    fresh = passed(fresh);
    expect(memcmp(&fresh, &handle, sizeof handle) != 0, "other memory, the same handle");
    if (tap_ranks > 1) {
        CUDA(cudaIpcOpenMemHandle(&opened, fresh, LAZY));
        CUDA(cudaIpcCloseMemHandle(opened));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    point("refused: memory that its owner has freed");
    CUDA(cudaFree(mine));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaFree(managed));
}

/* With the checks off, since the manual does not allow it: the owner frees what another
 * has open. It is not there for anybody else, and the other still reads what was written
 * last. */
static void freed_while_open(size_t bytes) {
    unsigned char *host = malloc(bytes), *mine = NULL, *more[20];
    void *theirs = NULL, *again = NULL;
    cudaIpcMemHandle_t handle, inside;
    CUDA(cudaMalloc((void **)&mine, bytes));
    fill(host, tap_rank, bytes);
    CUDA(cudaMemcpy(mine, host, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaIpcGetMemHandle(&handle, mine));
    CUDA(cudaIpcGetMemHandle(&inside, mine + bytes - 1));
    expect(memcmp(&handle, &inside, sizeof handle) == 0,
           "an address inside has another handle");
    handle = passed(handle);
    if (tap_ranks > 1) {
        CUDA(cudaIpcOpenMemHandle(&theirs, handle, LAZY));
        CUDA(cudaMemset(theirs, 7, 1));
        CUDA(cudaMemset(theirs, value(next, 0), 1));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CUDA(cudaFree(mine));
    // Whatever comes into its place, the others' data stays.
    for (int i = 0; i < 20; i++) {
        CUDA(cudaMalloc((void **)&more[i], bytes));
        CUDA(cudaMemset(more[i], 0, bytes));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (tap_ranks > 1) {
        holds(theirs, next, bytes, "freed by its owner, what is open here");
        CUDA_IS(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&again, handle, LAZY));
        CUDA(cudaIpcCloseMemHandle(theirs));
    }
    for (int i = 0; i < 20; i++)
        CUDA(cudaFree(more[i]));
    free(host);
    point("%zu bytes, freed by their owner while another has them open", bytes);
}

/* What was shared or opened leaves nothing mapped behind. */
static void nothing_left(void) {
    char line[1000];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        expect(!strstr(line, "nccl-cpu-shared") && !strstr(line, "nccl-cpu-event"),
               "still mapped: %s", line);
    expect(maps != NULL, "no /proc/self/maps");
    if (maps)
        fclose(maps);
    point("nothing is left of what was shared and freed");
}

/* Every rank opens every other's, from an address inside it, at the same time. */
static void all_open_all(void) {
    enum { BYTES = 5000 };
    unsigned char *mine, host[BYTES];
    cudaIpcMemHandle_t handle, *all = malloc((size_t)tap_ranks * sizeof *all);
    void **opened = calloc((size_t)tap_ranks, sizeof *opened);
    CUDA(cudaMalloc((void **)&mine, BYTES));
    fill(host, tap_rank, BYTES);
    CUDA(cudaIpcGetMemHandle(&handle, mine + 99));
    CUDA(cudaMemcpyAsync(mine, host, BYTES, cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
    MPI_Allgather(&handle, sizeof handle, MPI_BYTE, all, sizeof handle, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int r = 0; r < tap_ranks; r++)
        if (r != tap_rank)
            CUDA(cudaIpcOpenMemHandle(&opened[r], all[r], LAZY));
    for (int r = 0; r < tap_ranks; r++)
        if (r != tap_rank)
            holds(opened[r], r, BYTES, "one of all");
    for (int r = 0; r < tap_ranks; r++)
        if (r != tap_rank)
            CUDA(cudaIpcCloseMemHandle(opened[r]));
    MPI_Barrier(MPI_COMM_WORLD);
    CUDA(cudaFree(mine));
    free(opened);
    free(all);
    point("all ranks open all others' buffers, by an address inside them");
}

/* NCCL uses opened memory like any other, and may be at work while a handle is made. */
static void with_nccl(ncclComm_t comm) {
    enum { BYTES = 100000 };
    unsigned char *mine, *mail, *host = malloc(BYTES);
    void *theirs = NULL;
    cudaIpcMemHandle_t handle;
    CUDA(cudaMalloc((void **)&mine, BYTES));
    CUDA(cudaMalloc((void **)&mail, BYTES));
    fill(host, tap_rank, BYTES);
    CUDA(cudaMemcpyAsync(mine, host, BYTES, cudaMemcpyHostToDevice, stream));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(mine, BYTES, ncclUint8, next, comm, stream));
    NCCL(ncclRecv(mail, BYTES, ncclUint8, previous, comm, stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaIpcGetMemHandle(&handle, mail));
    cudaIpcMemHandle_t other;
    CUDA(cudaIpcGetMemHandle(&other, mine));
    CUDA(cudaStreamSynchronize(stream));
    handle = passed(handle);
    if (tap_ranks > 1) {
        // The next rank's mail came from here; it goes out once more, from there.
        CUDA(cudaIpcOpenMemHandle(&theirs, handle, LAZY));
        holds(theirs, tap_rank, BYTES, "the next rank's mail");
        // Nothing of this closes it.
        void *again;
        CUDA(cudaIpcOpenMemHandle(&again, handle, LAZY));
        CUDA(cudaIpcCloseMemHandle(again));
        CUDA_IS(cudaErrorInvalidValue, cudaFree(theirs));
        CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(mine));
        NCCL(ncclGroupStart());
        NCCL(ncclSend(theirs, BYTES, ncclUint8, previous, comm, stream));
        NCCL(ncclRecv(mine, BYTES, ncclUint8, next, comm, stream));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(stream));
        holds(mine, next, BYTES, "sent from opened memory");
        CUDA(cudaIpcCloseMemHandle(theirs));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CUDA(cudaFree(mail));
    CUDA(cudaFree(mine));
    free(host);
    point("a handle made while NCCL is at work; NCCL sends from opened memory");
}

static void attributes(void) {
    int devices = 0, v = -1;
    cudaGetDeviceCount(&devices);
    CUDA_IS(cudaErrorInvalidDevice,
            cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, 0));
    CUDA_IS(cudaErrorInvalidDevice,
            cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 0, devices));
    CUDA_IS(cudaErrorInvalidDevice,
            cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, -1, 0));
    for (int from = 0; from < devices; from++)
        for (int to = 0; to < devices; to++) {
            if (from == to)
                continue;
            CUDA(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, from, to));
            expect(v == 1, "access from %d to %d: %d", from, to, v);
            CUDA(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrPerformanceRank, from, to));
            expect(v == 0, "rank from %d to %d: %d", from, to, v);
            CUDA_IS(cudaErrorInvalidValue,
                    cudaDeviceGetP2PAttribute(&v, (enum cudaDeviceP2PAttr)99, from, to));
            CUDA_IS(
                cudaErrorInvalidValue,
                cudaDeviceGetP2PAttribute(NULL, cudaDevP2PAttrAccessSupported, from, to));
        }
    point("what is said of each pair of devices");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    next = (tap_rank + 1) % tap_ranks;
    previous = (tap_rank + tap_ranks - 1) % tap_ranks;
    if (argc > 1) { // freed
        freed_while_open(5000);
        freed_while_open(3 << 20);
        return finish();
    }
    ncclComm_t comm = world_comm();
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const size_t sizes[] = {1, 4096, 4097, 100003, (5 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        exchange(sizes[i]);
    refusals();
    all_open_all();
    with_nccl(comm);
    nothing_left();
    attributes();
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    return finish();
}
