//: kind repair
//: title Right, but three times as slow
//: trains asking who shares a node, instead of working it out
//: setup mpi
//: ranks 4 | 1 2 6
//: run 4 CPU_HOSTS=2:cyclic
//: run 6 CPU_HOSTS=3
//: starter inside has
//: wrong other-guess s/MPI_Comm here;.*?free\(&here\)\);/const int nnodes = nranks > 4 ? 3 : 2;\nconst int first = rank % nnodes, local = rank \/ nnodes;/s: inside has
//: wrong only-inside s/ncclCommSplit\(all, local, first, across/ncclCommSplit(all, 0, rank, across/: across has
//: wrong exchanged s/all, first, local, inside/all, local, first, inside/: inside has
//: learned Only the launcher knows where it has put the ranks; MPI_Comm_split_type tells you.
//: why MPI_COMM_TYPE_SHARED groups the ranks that share a machine, however they were dealt out.
//: hint What does the code take for granted about ranks 0 and 1? Look at how the job was started.
//: hint MPI_Comm_split_type with MPI_COMM_TYPE_SHARED gives you a communicator of this machine's ranks. What do you need to
//:   know from it for the two colors?
//: hint Its rank in there is the color of `across`. For `inside` take a number that all ranks of a machine share and
//:   no other machine has, such as the rank (among all) of its first one: MPI_Bcast it in there.
//: file

/*
 * An all-reduce in three steps was fast on the old cluster. On the new one its sums are
 * still right, but it takes three times as long, and most of the traffic that should stay
 * in a node goes over the network. There, mpirun is called with --map-by node.
 *
 * `inside` must have the ranks that share this rank's node, and `across` one rank of each
 * node. All nodes have the same number of ranks. Repair it for any way to start the job.
 */
#include "lesson.h"

void split(ncclComm_t all, int rank, int nranks, ncclComm_t *inside, ncclComm_t *across) {
    //: starter
    const int nlocal = nranks > 1 ? nranks / 2 : 1; // two nodes
    const int node = rank / nlocal, local = rank % nlocal;
    CHECK_NCCL(ncclCommSplit(all, node, local, inside, NULL));
    CHECK_NCCL(ncclCommSplit(all, local, node, across, NULL));
    //: solution
    (void)nranks;
    MPI_Comm here;
    int local, first = rank;
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                                  MPI_INFO_NULL, &here));
    CHECK_MPI(MPI_Comm_rank(here, &local));
    CHECK_MPI(MPI_Bcast(&first, 1, MPI_INT, 0, here));
    CHECK_MPI(MPI_Comm_free(&here));
    CHECK_NCCL(ncclCommSplit(all, first, local, inside, NULL));
    CHECK_NCCL(ncclCommSplit(all, local, first, across, NULL));
    //: end
}
//: check
void split(ncclComm_t all, int rank, int nranks, ncclComm_t *inside, ncclComm_t *across);

/* How many ranks a communicator has, and how many different nodes they are on. */
static int nodes_of(ncclComm_t comm, int node, cudaStream_t stream, int *n) {
    int *all, *host = check_host((size_t)check_nranks * sizeof *host), nodes = 0;
    CHECK_NCCL(ncclCommCount(comm, n));
    all = check_device((size_t)(*n + 1) * sizeof *all);
    check_put(all, &node, sizeof node);
    CHECK_NCCL(ncclAllGather(all, all + 1, 1, ncclInt32, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(
        cudaMemcpy(host, all + 1, (size_t)*n * sizeof *host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < *n; i++) {
        bool before = false;
        for (int k = 0; k < i; k++)
            before = before || host[k] == host[i];
        nodes += !before;
    }
    return nodes;
}

void check(void) {
    MPI_Comm here;
    int node = check_rank, local, nlocal, ndevices, n;
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, check_rank,
                                  MPI_INFO_NULL, &here));
    CHECK_MPI(MPI_Comm_rank(here, &local));
    CHECK_MPI(MPI_Comm_size(here, &nlocal));
    CHECK_MPI(MPI_Bcast(&node, 1, MPI_INT, 0, here));
    CHECK_MPI(MPI_Comm_free(&here));
    const int nnodes = check_nranks / nlocal;
    check_case("%d nodes of %d ranks", nnodes, nlocal);
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(local % ndevices));
    ncclUniqueId id;
    ncclComm_t all, inside, across;
    cudaStream_t stream;
    if (check_rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&all, check_nranks, id, check_rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    split(all, check_rank, check_nranks, &inside, &across);
    int nodes = nodes_of(inside, node, stream, &n);
    check_that(nodes == 1, "inside has ranks of %d nodes", nodes);
    check_that(n == nlocal, "inside has %d ranks, and this node has %d", n, nlocal);
    nodes = nodes_of(across, node, stream, &n);
    check_that(nodes == nnodes && n == nnodes,
               "across has %d ranks on %d nodes, not one on each of %d", n, nodes,
               nnodes);
    CHECK_NCCL(ncclCommDestroy(across));
    CHECK_NCCL(ncclCommDestroy(inside));
    CHECK_NCCL(ncclCommDestroy(all));
    CHECK_CUDA(cudaStreamDestroy(stream));
}
