/*
 * Without MPI: the ranks are told who they are by any launcher, or by you, and the unique
 * id travels through a small key-value store over TCP.
 *
 *     torchrun --no-python --nproc_per_node=4 ./without_mpi
 *     srun -n 4 ./without_mpi          mpirun -np 4 ./without_mpi
 *     for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 ./without_mpi & done; wait
 */
#define _GNU_SOURCE // getaddrinfo, accept4
#include "lesson.h"
#include "older.h"
#include "store.h"

enum { MOST_ROOTS = 64, MOST_RANKS = 1000000, MOST_SECONDS = 1000000 };

/* Who this process is, from the first launcher whose variables are all there. */
static struct place {
    const char *who, *rank, *size, *local;
} const places[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
};

/* What a variable says, if it is a number in range. Without the variable: `otherwise`. */
static int number_of(const char *variable, int otherwise, int least, int most) {
    const char *text = getenv(variable);
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : otherwise;
    if (text && (end == text || *end || number < least || number > most))
        lesson_fail("%s=%s: it must be a whole number from %d to %d%s", variable, text,
                    least, most, least ? "" : ", because ranks count from 0");
    return (int)number;
}

/* Who am I? A launcher starts the processes and says so in their environment. */
static const char *find_place(int *rank, int *nranks, int *local) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct place *p = &places[i];
        if (!getenv(p->rank) || !getenv(p->size))
            continue;
        lesson_alone.rank = atoi(getenv(p->rank)); // for the message, if it is wrong
        *nranks = number_of(p->size, 1, 1, MOST_RANKS);
        *rank = number_of(p->rank, 0, 0, *nranks - 1);
        *local =
            number_of(p->local, *rank, 0, MOST_RANKS); // on one machine both are equal
        return p->who;
    }
    if (getenv("RANK") || getenv("WORLD_SIZE"))
        lesson_fail("%s is set, but %s is not", getenv("RANK") ? "RANK" : "WORLD_SIZE",
                    getenv("RANK") ? "WORLD_SIZE" : "RANK");
    return "nobody";
}

/* Each rank sets a key and waits for the others': an error then names who is missing. */
static void meet(struct store *store, int rank, int nranks) {
    char key[32];
    snprintf(key, sizeof key, "rank %d", rank);
    store_set(store, key, "", 0);
    for (int r = 0; r < nranks; r++) {
        snprintf(key, sizeof key, "rank %d", r);
        store_get(store, key, NULL, 0);
    }
}

/* One rank makes a unique id and puts it into the store. The others take it out. */
static void share_id(struct store *store, const char *key, int maker, int rank,
                     ncclUniqueId *id) {
    if (rank == maker) {
        CHECK_NCCL(ncclGetUniqueId(id));
        store_set(store, key, id, sizeof *id);
    } else {
        store_get(store, key, id, sizeof *id);
    }
}

int main(int argc, char **argv) {
    size_t count = 0, nroots = 0;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements on each rank", .number = &count, .usual = 4,
         .least = 1},
        {"--roots", "N", "ranks that make a unique id", .number = &nroots, .usual = 1,
         .least = 1, .most = MOST_ROOTS},
        {0}};
    lesson_options(argc, argv, options);
    const size_t bytes = count * sizeof(float);

    int rank = 0, nranks = 1, local = 0;
    const char *who = find_place(&rank, &nranks, &local);
    lesson_alone.nranks = nranks;

    // Where do we meet? Rank 0 listens there. torchrun has a store of its own at that
    // port.
    const char *address = getenv("MASTER_ADDR") ? getenv("MASTER_ADDR") : "127.0.0.1";
    const int next = getenv("TORCHELASTIC_RUN_ID") ? 1 : 0;
    const int port = number_of("MASTER_PORT", 29500, 1, 65535 - next) + next;
    const int seconds = number_of("STORE_SECONDS", 30, 1, MOST_SECONDS);
    struct store *store = store_open(address, port, rank, seconds);

    // Bind to a GPU before the first NCCL call. The rank within the machine chooses it.
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(local % ndevices));

    // Rank 0 makes the unique id, and with --roots some others one each.
    ncclUniqueId ids[MOST_ROOTS];
    if ((int)nroots > nranks)
        nroots = (size_t)nranks;
    for (int i = 0; i < (int)nroots; i++) {
        char key[32];
        snprintf(key, sizeof key, "unique id %d", i);
        share_id(store, key, i * nranks / (int)nroots, rank, &ids[i]);
    }
    meet(store, rank, nranks);
    if (rank == 0)
        printf("%d rank%s, counted by %s, met at %s:%d\n", nranks, nranks == 1 ? "" : "s",
               who, address, port);
    fflush(stdout);

    // From here on all is as it was with MPI.
    ncclComm_t comm;
    if (nroots == 1)
        CHECK_NCCL(ncclCommInitRank(&comm, nranks, ids[0], rank));
    else // each rank connects to one of them
        CHECK_NCCL(ncclCommInitRankScalable(&comm, nranks, rank, (int)nroots, ids, NULL));
    cudaStream_t stream;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host = lesson_malloc((size_t)nranks * bytes), *buffer, *all; // on the GPU
    CHECK_CUDA(cudaMalloc((void **)&buffer, bytes));
    CHECK_CUDA(cudaMalloc((void **)&all, (size_t)nranks * bytes));
    for (size_t i = 0; i < count; i++)
        host[i] = (float)(rank + 1);
    CHECK_CUDA(cudaMemcpyAsync(buffer, host, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, stream));

    // Nobody else gathers the results now: NCCL does that, too.
    CHECK_NCCL(ncclAllGather(buffer, all, count, ncclFloat32, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(host, all, (size_t)nranks * bytes, cudaMemcpyDeviceToHost));
    if (rank == 0)
        lesson_draw_all("After all-reduce:", host, count, ncclFloat32, nranks);
    for (size_t i = 0; i < (size_t)nranks * count; i++)
        lesson_expect(i % count, (double)host[i], nranks * (nranks + 1) / 2.0);
    const int exit_code = lesson_verdict("element");

    CHECK_CUDA(cudaFree(all));
    CHECK_CUDA(cudaFree(buffer));
    free(host);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    store_close(store);
    return exit_code;
}
