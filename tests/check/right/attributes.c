// Communicators of NCCL that are kept as attributes of those of MPI, as libraries do that
// are called with these. They go with them: in MPI_Comm_free, and the last one at the
// beginning of MPI_Finalize, which deletes the attributes of MPI_COMM_SELF first of all
// (MPI 4.0, 11.2.4).
#include "../check.h"

struct kept {
    ncclComm_t comm;
    cudaStream_t stream;
    int *sum;
};

static int key, released, ended;
static struct kept *of_world;

static int let_go(MPI_Comm mpi, int number, void *value, void *unused) {
    struct kept *kept = value;
    (void)mpi;
    (void)number;
    (void)unused;
    MUST(cudaStreamSynchronize(kept->stream));
    MUST(ncclCommDestroy(kept->comm));
    MUST(cudaFree(kept->sum));
    MUST(cudaStreamDestroy(kept->stream));
    free(kept);
    released++;
    return MPI_SUCCESS;
}

static struct kept *make(MPI_Comm mpi) {
    struct kept *kept = malloc(sizeof *kept);
    ncclUniqueId id;
    int mine, n;
    MPI_Comm_rank(mpi, &mine);
    MPI_Comm_size(mpi, &n);
    if (mine == 0)
        MUST(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, mpi);
    MUST(ncclCommInitRank(&kept->comm, n, id, mine));
    MUST(cudaStreamCreateWithFlags(&kept->stream, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&kept->sum, sizeof *kept->sum));
    return kept;
}

static struct kept *of(MPI_Comm mpi) {
    struct kept *kept;
    int there;
    MPI_Comm_get_attr(mpi, key, &kept, &there);
    if (!there) {
        kept = make(mpi);
        MPI_Comm_set_attr(mpi, key, kept);
    }
    return kept;
}

static int ones(const struct kept *kept) {
    int one = 1, sum;
    MUST(cudaMemcpyAsync(kept->sum, &one, sizeof one, cudaMemcpyHostToDevice,
                         kept->stream));
    MUST(ncclAllReduce(kept->sum, kept->sum, 1, ncclInt32, ncclSum, kept->comm,
                       kept->stream));
    MUST(cudaMemcpyAsync(&sum, kept->sum, sizeof sum, cudaMemcpyDeviceToHost,
                         kept->stream));
    MUST(cudaStreamSynchronize(kept->stream));
    return sum;
}

static int at_the_end(MPI_Comm self, int number, void *value, void *unused) {
    int finalized;
    MPI_Finalized(&finalized);
    EXPECT(finalized, 0);
    ended++;
    return let_go(self, number, value, unused);
}

int main(void) {
    start_mpi();
    start_device();
    int last, half_size;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, let_go, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &last, NULL);
    of_world = make(MPI_COMM_WORLD);
    MPI_Comm_set_attr(MPI_COMM_SELF, last, of_world);
    for (int i = 0; i < 2; i++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Comm_size(half, &half_size);
        EXPECT(ones(of(half)), half_size);
        EXPECT(ones(of(half)), half_size);
        EXPECT(ones(of_world), nranks);
        MPI_Comm_free(&half);
        EXPECT(released, i + 1);
    }
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&last);
    MPI_Finalize();
    return released == 3 && ended == 1 ? 0 : 4;
}
