/*
 * Ring all-reduce by hand: chunks go round a ring, to be added up, then to be shared.
 *
 *     mpirun -np 4 ./ring_allreduce [-n COUNT] [--time] [--pipelined]
 */
#include "measure.h"
#include <cublas_v2.h>

/* One step: what came in with the last one goes out, and what comes in is returned. */
static struct chunk exchange(struct ring *r, struct lane l, int step, int piece) {
    const struct chunk out = ring_chunk(r, r->rank - step, piece);
    const struct chunk in = ring_chunk(r, r->rank - step - 1, piece);
    const float *from = step == 0 ? out.mine : out.sum;
    // Without the group each rank waits in its send for a receive that no rank reaches.
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(from, out.count, ncclFloat32, r->next, l.comm, l.stream));
    CHECK_NCCL(ncclRecv(in.sum, in.count, ncclFloat32, r->previous, l.comm, l.stream));
    CHECK_NCCL(ncclGroupEnd());
    r->sent += out.count * sizeof(float);
    return in;
}

int main(int argc, char **argv) {
    // MPI starts one process per GPU and tells each of them which one it is.
    CHECK_MPI(MPI_Init(&argc, &argv));
    // Errors come back from its calls, for CHECK_MPI to explain.
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank, nranks, ndevices;
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &nranks));
    struct ring r = ring_options(argc, argv, rank, nranks);

    // Bind to a GPU before the first NCCL call: NCCL takes the current device.
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(rank % ndevices));
    lesson_one_gpu_per_rank();

    // One rank makes the unique id, MPI carries it, and all make the communicator of it.
    ncclUniqueId id;
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&r.comm, nranks, id, rank));

    // cuBLAS adds on the GPU; pipelined, in a stream of its own that gives way to NCCL's.
    CHECK_CUDA(cudaStreamCreateWithPriority(&r.stream, cudaStreamNonBlocking, -5));
    ring_pipe(&r);
    cublasHandle_t blas;
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, r.adding));

    // Rank 0 brings 1, 2, 3, …, rank 1 10, 20, 30, …: a sum's digits say who is in it.
    float *host = ring_before(&r), *result = host + r.count;
    ring_malloc(&r);
    CHECK_CUDA(cudaMemcpyAsync(r.mine, host, r.bytes, cudaMemcpyHostToDevice, r.stream));
    CHECK_CUDA(cudaMemcpyAsync(r.sum, host, r.bytes, cudaMemcpyHostToDevice, r.stream));

    // Plain: the first round adds its own to what came in, the second only passes it on.
    const float one = 1;
    while (!r.pipelined && measure_again(&r.ring, r.stream))
        for (int step = 0; step < 2 * (nranks - 1); step++) {
            const struct chunk in = exchange(&r, r.lanes[0], step, 0);
            if (step < nranks - 1)
                CHECK_CUBLAS(cublasSaxpy_64(blas, in.count, &one, in.mine, 1, in.sum, 1));
            ring_show(&r, step);
        }
    // Pipelined: while one piece of a chunk is added, others travel, each in its lane.
    while (r.pipelined && measure_again(&r.ring, r.stream)) {
        ring_fork(&r);
        for (int step = 0; step < 2 * (nranks - 1); step++)
            for (int piece = 0; piece < r.pieces; piece++) {
                const struct lane l = r.lanes[piece % RING_LANES];
                CHECK_CUDA(cudaStreamWaitEvent(l.stream, r.added[piece], 0));
                const struct chunk in = exchange(&r, l, step, piece);
                if (step >= nranks - 1)
                    continue;
                CHECK_CUDA(cudaEventRecord(l.received, l.stream));
                CHECK_CUDA(cudaStreamWaitEvent(r.adding, l.received, 0));
                CHECK_CUBLAS(cublasSaxpy_64(blas, in.count, &one, in.mine, 1, in.sum, 1));
                CHECK_CUDA(cudaEventRecord(r.added[piece], r.adding));
            }
        ring_join(&r);
    }
    CHECK_CUDA(cudaMemcpy(result, r.sum, r.bytes, cudaMemcpyDeviceToHost));

    // NCCL's own, on the same numbers, is the judge of the result and of the time.
    while (measure_again(&r.nccl, r.stream))
        CHECK_NCCL(ncclAllReduce(r.mine, r.sum, r.count, ncclFloat32, ncclSum, r.comm,
                                 r.stream));
    CHECK_CUDA(cudaMemcpy(host, r.sum, r.bytes, cudaMemcpyDeviceToHost));
    const int exit_code = ring_verdict(&r, result, host);

    // In reverse order: nothing may go while something made later still uses it.
    ring_free(&r);
    free(host);
    CHECK_CUBLAS(cublasDestroy(blas));
    ring_pipe_destroy(&r);
    CHECK_CUDA(cudaStreamDestroy(r.stream));
    CHECK_NCCL(ncclCommDestroy(r.comm));
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
