/*
 * Bandwidth: what a collective costs at every size, and the law behind it.
 *
 *     mpirun -np 4 ./bandwidth [--op NAME] [--max BYTES] [--csv FILE] [-h]
 */
#include "measure.h"

enum { BROADCAST, REDUCE, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, SEND_RECV };

/* Queues one operation on a buffer of n elements; a part is what one rank has of it. */
static ncclResult_t operate(int op, const float *send, float *recv, struct bandwidth *b,
                            ncclComm_t comm, cudaStream_t stream) {
    const size_t n = b->count, part = n / b->nranks;
    switch (op) {
    case BROADCAST: return ncclBroadcast(send, recv, n, ncclFloat, 0, comm, stream);
    case REDUCE: return ncclReduce(send, recv, n, ncclFloat, ncclSum, 0, comm, stream);
    case ALL_REDUCE:
        return ncclAllReduce(send, recv, n, ncclFloat, ncclSum, comm, stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, part, ncclFloat, ncclSum, comm, stream);
    case ALL_GATHER: return ncclAllGather(send, recv, part, ncclFloat, comm, stream);
    }
    // A group lets all sends and receives in it make progress together.
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; op == ALL_TO_ALL && peer < b->nranks; peer++) {
        CHECK_NCCL(ncclSend(send + peer * part, part, ncclFloat, peer, comm, stream));
        CHECK_NCCL(ncclRecv(recv + peer * part, part, ncclFloat, peer, comm, stream));
    }
    if (op == SEND_RECV) {
        CHECK_NCCL(ncclSend(send, n, ncclFloat, b->next, comm, stream));
        CHECK_NCCL(ncclRecv(recv, n, ncclFloat, b->previous, comm, stream));
    }
    return ncclGroupEnd();
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));

    // How often each byte of a buffer crosses a rank's link; whether ranks have parts.
    const double once = 1, others = (nranks - 1.0) / nranks;
    const struct operation operations[] = {
        {"broadcast", once, false},        {"reduce", once, false},
        {"all_reduce", 2 * others, false}, {"reduce_scatter", others, true},
        {"all_gather", others, true},      {"all_to_all", others, true},
        {"send_recv", once, false},        {0}};
    struct bandwidth b = bandwidth_options(argc, argv, rank, nranks, operations);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // As long as the largest size that fits; the smaller ones use a part of them.
    float *sendbuf = bandwidth_buffer(&b, comm), *recvbuf = bandwidth_buffer(&b, comm);
    bandwidth_fill(&b, sendbuf, stream);

    for (int op = 0; operations[op].name; op++) {
        while (bandwidth_size(&b, operations, op)) {
            // Once to be checked, which also lets NCCL make its connections.
            CHECK_CUDA(cudaMemsetAsync(recvbuf, 255, b.bytes, stream));
            CHECK_NCCL(operate(op, sendbuf, recvbuf, &b, comm, stream));
            bandwidth_check(&b, recvbuf, stream);

            // Then timed, each on another part of the buffers: no cache is to help.
            while (measure_again(&b.time, stream)) {
                const size_t at = bandwidth_part(&b);
                CHECK_NCCL(operate(op, sendbuf + at, recvbuf + at, &b, comm, stream));
            }
            const double algbw = (double)b.bytes / b.time.seconds;
            bandwidth_row(&b, algbw, algbw * operations[op].factor);
        }
        bandwidth_law(&b, op); // T = alpha + n / beta, by least squares
    }
    const int exit_code = lesson_verdict("element");

    // In reverse order: nothing may go while something made later still uses it.
    bandwidth_free(&b, comm, recvbuf);
    bandwidth_free(&b, comm, sendbuf);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_NCCL(ncclCommDestroy(comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
