//: kind repair
//: title Two ranks on one GPU
//: trains the rank's number on its own node
//: setup mpi
//: build cpu
//: ranks 4 | 1 2 3 7 8
//: run 4 CPU_HOSTS=2:cyclic
//: run 4 CPU_HOSTS=2
//: run 8 CPU_HOSTS=4:cyclic
//: starter take the same GPU
//: learned The rank among those of one's own node names the GPU, however the ranks were placed.
//: why MPI knows which ranks share a node, and numbers them from 0 in a communicator of their own. The modulo
//:   keeps the answer right where each rank sees only one GPU: its number is 0.
//: hint Write down for four ranks on two nodes, dealt out in turn, which GPU each takes.
//: hint MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes a communicator of the ranks of a node. It also works
//:   where a launcher's variable, such as SLURM_LOCALID, is not set: getenv then returns NULL, and atoi of NULL crashes.
//: hint The rank in that communicator, modulo ndevices, is the answer. Free the communicator.
//: wrong local-no-modulo s/local % ndevices/local/: if ranks are started so that each sees only one GPU … sees only GPU 0
//: file

/*
 * "On one node it works. On two nodes with two GPUs each our cluster deals the ranks out
 * in turn: ranks 0 and 2 are on the first node, 1 and 3 on the second. NCCL says: invalid
 * usage."
 *
 * Repair it: the ranks of a node must take different GPUs, however they are placed. MPI
 * has been started. You may ask it.
 */
#include "lesson.h"

/* The GPU that this rank takes: 0 to ndevices - 1. */
int choose_device(int rank, int ndevices) {
    //: starter
    return rank % ndevices;
    //: solution
    MPI_Comm node;
    int local;
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                                  MPI_INFO_NULL, &node));
    CHECK_MPI(MPI_Comm_rank(node, &local));
    CHECK_MPI(MPI_Comm_free(&node));
    return local % ndevices;
    //: wrong halved: take the same GPU
    return rank / 2 % ndevices;
    //: wrong always-0: take the same GPU
    return 0;
    //: wrong no-modulo: CPU_HOSTS=2:cyclic … which its node does not have
    return rank;
    //: wrong launcher-no-modulo: sees only GPU 0
    return atoi(getenv("OMPI_COMM_WORLD_LOCAL_RANK"));
    //: right launcher
    return atoi(getenv("OMPI_COMM_WORLD_LOCAL_RANK")) % ndevices;
    //: wrong not-in-slurm: a segmentation fault
    return atoi(getenv("SLURM_LOCALID")) % ndevices;
    //: wrong by-rank: take the same GPU
    int nranks;
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    return nranks > ndevices ? rank / ndevices : rank;
    //: end
}
//: check
int setenv(const char *name, const char *value, int overwrite);
int choose_device(int rank, int ndevices);

/* mpirun knows only the real machine. This is what it would say on the nodes of
 * CPU_HOSTS. */
static void tell_local_rank(void) {
    MPI_Comm node;
    int local;
    CHECK_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, check_rank,
                                  MPI_INFO_NULL, &node));
    CHECK_MPI(MPI_Comm_rank(node, &local));
    CHECK_MPI(MPI_Comm_free(&node));
    char number[12];
    snprintf(number, sizeof number, "%d", local);
    if (getenv("OMPI_COMM_WORLD_LOCAL_RANK"))
        setenv("OMPI_COMM_WORLD_LOCAL_RANK", number, 1);
}

void check(void) {
    struct {
        int device;
        char node[MPI_MAX_PROCESSOR_NAME];
    } mine, all[64];
    int length, ndevices;
    memset(&mine, 0, sizeof mine);
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_MPI(MPI_Get_processor_name(mine.node, &length));
    tell_local_rank();
    mine.device = choose_device(check_rank, ndevices);
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));
    check_that(mine.device >= 0 && mine.device < ndevices,
               "takes GPU %d, which its node does not have: it has %d", mine.device,
               ndevices);
    for (int r = 0; r < check_nranks; r++)
        check_that(r == check_rank || all[r].device != mine.device ||
                       strcmp(all[r].node, mine.node) != 0,
                   "rank %d and this rank are on the same node and take the same GPU, %d",
                   r, mine.device);

    // So far a node has had as many GPUs as ranks. What follows is for those who have
    // solved that: it comes in the last run only.
    if (check_nranks < 8)
        return;
    check_case("if ranks are started so that each sees only one GPU (--gpus-per-task=1)");
    mine.device = choose_device(check_rank, 1);
    check_that(mine.device == 0, "takes GPU %d, but sees only GPU 0: ndevices is 1",
               mine.device);
}
