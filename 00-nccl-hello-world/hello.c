/*
 * Hello: every rank says who and where it is, and joins the communicator.
 *
 *     mpirun -np 4 ./hello
 */
#include "lesson.h"

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    lesson_options(argc, argv, NULL); // only -h

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    int ndevices, device;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    CHECK_CUDA(cudaGetDevice(&device));
    lesson_one_gpu_per_rank();

    // The unique id is how the ranks find one another. One rank makes it, MPI carries it.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));

    // Returns when all ranks have called it with the same id.
    ncclComm_t comm;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));

    // Three libraries have to fit together: the first thing to look at when they do not.
    int nccl, runtime, driver;
    CHECK_NCCL(ncclGetVersion(&nccl));
    CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
    CHECK_CUDA(cudaDriverGetVersion(&driver));
    if (rank == 0)
        printf("NCCL %d.%d.%d, CUDA runtime %d.%d, driver for CUDA %d.%d\n", nccl / 10000,
               nccl / 100 % 100, nccl % 100, runtime / 1000, runtime / 10 % 100,
               driver / 1000, driver / 10 % 100);

    // Where this rank is: the bus id names one GPU of the node, however it is numbered.
    char node[MPI_MAX_PROCESSOR_NAME], bus_id[32], line[256];
    int length, comm_rank, comm_nranks, comm_device;
    struct cudaDeviceProp properties;
    CHECK_MPI(MPI_Get_processor_name(node, &length));
    CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
    CHECK_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));

    // What the communicator says of itself must agree with what we asked for.
    CHECK_NCCL(ncclCommUserRank(comm, &comm_rank));
    CHECK_NCCL(ncclCommCount(comm, &comm_nranks));
    CHECK_NCCL(ncclCommCuDevice(comm, &comm_device));
    snprintf(
        line, sizeof line,
        "rank %d of %d on %.60s: GPU %d, %.60s, %s; communicator: rank %d of %d, GPU %d",
        rank, nranks, node, device, properties.name, bus_id, comm_rank, comm_nranks,
        comm_device);
    lesson_print_in_order(line);
    lesson_expect(0, comm_rank, rank);
    lesson_expect(1, comm_nranks, nranks);
    lesson_expect(2, comm_device, device);
    const int exit_code = lesson_verdict("answer");

    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
