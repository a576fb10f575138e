/*
 * Peer to peer: what a copy from one GPU's memory into another's costs, in three ways.
 *
 *     mpirun -np 4 ./peer_to_peer [-n COUNT] [-h]
 */
#include "clock.h"

enum { THROUGH_HOST, DIRECTLY, BY_NCCL, WAYS };
enum { REPEAT = 10, CELL = 16 };

/* What every rank tells the others of itself. */
struct card {
    char machine[MPI_MAX_PROCESSOR_NAME];
    char bus_id[32];           // of its GPU: its number may be another in other processes
    cudaIpcMemHandle_t handle; // of the buffer that it receives in
};

/* Element i of what `rank` sends: the thousands say who sent it. */
static float value(int rank, size_t i) {
    return (float)(1000 * (rank + 1) + (int)(i % 1000));
}

/* Prints a table of all pairs: every rank brings its line, a text for each other rank. */
static void print_table(const char *title, char (*row)[CELL], int rank, int nranks) {
    char line[CELL * (nranks + 1)];
    int used = sprintf(line, "GPU %-4d", rank);
    for (int to = 0; to < nranks; to++)
        used += sprintf(line + used, " %9s", row[to]);
    if (rank == 0) {
        printf("%s\nfrom, to", title);
        for (int to = 0; to < nranks; to++)
            printf("%*sGPU %d", to < 10 ? 5 : to < 100 ? 4 : 3, "", to);
        printf("\n");
    }
    lesson_print_in_order(line);
    if (rank == 0)
        printf("\n");
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices, length;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    const size_t count = lesson_count(argc, argv, "floats in a copy", 1 << 18);
    const size_t bytes = count * sizeof(float);

    // Each rank has its GPU, as always.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    const int device = rank % ndevices;
    CHECK_CUDA(cudaSetDevice(device));
    lesson_one_gpu_per_rank();

    // What it sends, and where it receives. A third buffer may be another rank's.
    lesson_need_memory(3 * bytes);
    float *host = lesson_malloc(bytes);
    float *source, *target; // on the GPU
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&source, bytes));
    CHECK_CUDA(cudaMalloc((void **)&target, bytes));
    for (size_t i = 0; i < count; i++)
        host[i] = value(rank, i);
    CHECK_CUDA(cudaMemcpyAsync(source, host, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));

    // An address means nothing to another process. A handle does, on the same machine; it
    // is 64 plain bytes, which MPI carries.
    struct card mine = {.machine = ""}, cards[nranks];
    CHECK_MPI(MPI_Get_processor_name(mine.machine, &length));
    CHECK_CUDA(cudaDeviceGetPCIBusId(mine.bus_id, sizeof mine.bus_id, device));
    CHECK_CUDA(cudaIpcGetMemHandle(&mine.handle, target));
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, cards, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));

    // What the runtime says of the way from this GPU to each of the others: the other's
    // number in this process (-1: not seen), and whether its memory can be reached.
    int there[nranks], access[nranks], rating, atomics;
    char row[nranks][CELL];
    for (int to = 0; to < nranks; to++) {
        const bool near = strcmp(cards[to].machine, mine.machine) == 0;
        snprintf(row[to], CELL, "%s", to == rank ? "-" : near ? "not seen" : "far away");
        access[to] = near; // of a GPU that this process does not see, nobody can say
        if (!near ||
            cudaDeviceGetByPCIBusId(&there[to], cards[to].bus_id) != cudaSuccess) {
            there[to] = -1;
            cudaGetLastError(); // takes the error back: this was a question
        }
        if (to == rank && there[to] != device)
            lesson_fail("its own GPU is not where its card says");
        if (to != rank && there[to] == device) // ranks that share it
            snprintf(row[to], CELL, "same GPU");
        if (there[to] < 0 || there[to] == device)
            continue;
        CHECK_CUDA(cudaDeviceCanAccessPeer(&access[to], device, there[to]));
        CHECK_CUDA(cudaDeviceGetP2PAttribute(&rating, cudaDevP2PAttrPerformanceRank,
                                             device, there[to]));
        CHECK_CUDA(cudaDeviceGetP2PAttribute(
            &atomics, cudaDevP2PAttrNativeAtomicSupported, device, there[to]));
        snprintf(row[to], CELL, "%s/%d/%s", access[to] ? "yes" : "no", rating,
                 atomics ? "yes" : "no");
    }
    print_table("Peer access / performance rank / atomics", row, rank, nranks);

    ncclComm_t comm;
    for (int way = 0; way < WAYS; way++) {
        // Only now: NCCL opens ways between GPUs too, and the first table is without any.
        if (way == BY_NCCL) {
            ncclUniqueId id;
            if (rank == 0)
                CHECK_NCCL(ncclGetUniqueId(&id));
            CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
            CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
        }
        // One pair at a time, while the others wait.
        for (int pair = 0; pair < nranks * nranks; pair++) {
            const int from = pair / nranks, to = pair % nranks;
            int possible =
                way == BY_NCCL || (way == DIRECTLY ? access[to] : there[to] >= 0);
            CHECK_MPI(MPI_Bcast(&possible, 1, MPI_INT, from, MPI_COMM_WORLD));
            if (rank == from)
                snprintf(row[to], CELL, "-");
            if (!possible || from == to)
                continue;

            // Through the host: into memory that this process has on the other GPU,
            // without peer access. Directly: into the other's own, which opening enables.
            float *far = NULL;
            if (rank == from && way == THROUGH_HOST) {
                CHECK_CUDA(cudaSetDevice(there[to]));
                CHECK_CUDA(cudaMalloc((void **)&far, bytes));
                CHECK_CUDA(cudaSetDevice(device));
            } else if (rank == from && way == DIRECTLY) {
                CHECK_CUDA(cudaIpcOpenMemHandle((void **)&far, cards[to].handle,
                                                cudaIpcMemLazyEnablePeerAccess));
            }
            // So that nothing that came before is taken for the copy.
            CHECK_CUDA(cudaMemsetAsync(target, 0, bytes, stream));
            CHECK_CUDA(cudaStreamSynchronize(stream));

            struct stopwatch watch = {0};
            while (!stopwatch_settled(&watch)) {
                stopwatch_start(&watch);
                for (int i = 0; i < REPEAT; i++)
                    if (rank == from && way == THROUGH_HOST)
                        CHECK_CUDA(cudaMemcpyPeerAsync(far, there[to], source, device,
                                                       bytes, stream));
                    else if (rank == from && way == DIRECTLY)
                        CHECK_CUDA(cudaMemcpyAsync(far, source, bytes,
                                                   cudaMemcpyDeviceToDevice, stream));
                    else if (rank == from)
                        CHECK_NCCL(ncclSend(source, count, ncclFloat, to, comm, stream));
                    else if (rank == to && way == BY_NCCL)
                        CHECK_NCCL(
                            ncclRecv(target, count, ncclFloat, from, comm, stream));
                CHECK_CUDA(cudaStreamSynchronize(stream));
                stopwatch_stop(&watch, REPEAT);
            }
            if (rank == from)
                snprintf(row[to], CELL, "%.1f", (double)bytes / watch.seconds / 1e9);

            // Of a direct copy the receiver knows nothing. That the sender has waited for
            // it, and then stopped the watch together with all, says that it is there.
            if (rank == (way == THROUGH_HOST ? from : to)) {
                CHECK_CUDA(cudaMemcpy(host, way == THROUGH_HOST ? far : target, bytes,
                                      cudaMemcpyDeviceToHost));
                for (size_t i = 0; i < count; i++)
                    lesson_expect(i, (double)host[i], (double)value(from, i));
            }
            if (rank == from && way == THROUGH_HOST)
                CHECK_CUDA(cudaFree(far));
            if (rank == from && way == DIRECTLY)
                CHECK_CUDA(cudaIpcCloseMemHandle(far));
        }
        const char *titles[] = {"Through the host, GB/s", "Directly, GB/s",
                                "By NCCL, GB/s"};
        print_table(titles[way], row, rank, nranks);
    }
    // After this no rank has another's buffer open: it has spoken for all.
    const int exit_code = lesson_verdict("element");

    // In reverse order: nothing may go while something made later still uses it.
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_CUDA(cudaFree(target));
    CHECK_CUDA(cudaFree(source));
    CHECK_CUDA(cudaStreamDestroy(stream));
    free(host);
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
