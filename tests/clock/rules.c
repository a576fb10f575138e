/*
 * The rules of the modelled clock, on any number of ranks: a line "ok" or "not ok" for
 * each, of all ranks together.
 *
 *     NCCL_CPU_CLOCK=h200 mpirun -np N ./rules
 */
#include "clock_test.h"

#include <cublas_v2.h>

#include <math.h>

static void rule(bool kept, const char *text) {
    int all = kept;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s - %s\n", all ? "ok" : "not ok", text);
}

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-3 * fabs(b) + 1e-9;
}

static double start(void) {
    MUST(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

/* Seconds since `begin` when all of this GPU is done. */
static double all_done(double begin) {
    MUST(cudaDeviceSynchronize());
    return MPI_Wtime() - begin;
}

enum { SMALL = 1 << 10, LARGE = 4 << 20 };

/* One call of cuBLAS on its stream: n elements, or a product of 64 x 64 x n. */
static void blas_queue(cublasHandle_t blas, char call, int n, float *x, float *y) {
    const float one = 1;
    float norm;
    switch (call) {
    case 'g':
        MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, n, &one, x, 64, x, n,
                         &one, y, 64));
        break;
    case 'a': MUST(cublasSaxpy(blas, n, &one, x, 1, y, 1)); break;
    case 's': MUST(cublasSscal(blas, n, &one, x, 1)); break;
    case 'c': MUST(cublasScopy(blas, n, x, 1, y, 1)); break;
    default: MUST(cublasSnrm2(blas, n, x, 1, &norm));
    }
}

static double blas_call(cublasHandle_t blas, char call, int n, float *x, float *y) {
    const double t = start();
    blas_queue(blas, call, n, x, y);
    return all_done(t);
}

/* What twice as much takes longer. */
static double more(cublasHandle_t blas, char call, int n, float *x, float *y) {
    return blas_call(blas, call, 2 * n, x, y) - blas_call(blas, call, n, x, y);
}

/* Of a product, beside an all-reduce on c: what the stream of `blas` needs for it. */
static double beside(ncclComm_t c, cublasHandle_t blas, cudaEvent_t between[2],
                     float *buffers[3]) {
    cudaStream_t computing;
    float ms;
    MUST(cublasGetStream(blas, &computing));
    const double t = start();
    if (c)
        MUST(ncclAllReduce(buffers[0], buffers[0], LARGE, ncclFloat32, ncclSum, c,
                           stream));
    blas_queue(blas, 'g', 20000, buffers[1], buffers[2]);
    MUST(cudaEventRecord(between[0], computing));
    blas_queue(blas, 'g', 20000, buffers[1], buffers[2]);
    MUST(cudaEventRecord(between[1], computing));
    all_done(t);
    MUST(cudaEventElapsedTime(&ms, between[0], between[1]));
    return ms * 1e-3;
}

/* Of the memory of the rank before, opened here. */
static double copy_of_opened(float *to, float *mine, size_t bytes) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    cudaIpcMemHandle_t handle, theirs;
    float *there;
    MUST(cudaIpcGetMemHandle(&handle, mine));
    MPI_Sendrecv(&handle, sizeof handle, MPI_BYTE, next, 8, &theirs, sizeof theirs,
                 MPI_BYTE, previous, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MUST(cudaIpcOpenMemHandle((void **)&there, theirs, cudaIpcMemLazyEnablePeerAccess));
    const double t = start();
    MUST(cudaMemcpyAsync(to, there, bytes, cudaMemcpyDefault, stream));
    const double seconds = all_done(t);
    MUST(cudaIpcCloseMemHandle(there));
    MPI_Barrier(MPI_COMM_WORLD);
    return seconds;
}

int main(int argc, char **argv) {
    open_all(&argc, &argv);
    float *a = allocate(LARGE * sizeof(float)), *b = allocate(LARGE * sizeof(float));
    float *c = allocate(LARGE * sizeof(float)), *d = allocate(LARGE * sizeof(float)), ms;
    const float one = 1;
    const int last = nranks - 1;
    cudaStream_t other;
    cudaEvent_t begin, end;
    cublasHandle_t blas;
    ncclComm_t second, narrow;
    ncclConfig_t four = NCCL_CONFIG_INITIALIZER;
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, other));
    MUST(ncclCommSplit(comm, 0, rank, &second, NULL));
    four.maxCTAs = 4;
    MUST(ncclCommSplit(comm, 0, rank, &narrow, &four));

    // One alone
    double t = start();
    MUST(ncclAllReduce(a, a, SMALL, ncclFloat32, ncclSum, comm, stream));
    const double small = all_done(t);
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    const double large = all_done(t);
    rule(small > 1e-6 && small < 1e-4 && large > small, "more bytes take longer");

    // The last rank comes a millisecond late, and rank 0 has queued at once.
    t = start();
    while (rank == last && nranks > 1 && MPI_Wtime() < t + 1e-3)
        ;
    MUST(ncclAllReduce(a, a, SMALL, ncclFloat32, ncclSum, comm, stream));
    double late = all_done(t);
    rule(nranks == 1 ? near(late, small) : late > 1e-3 + small * 0.5 && late < 1.3e-3,
         "a collective starts when its last rank has come");

    // Sends: who does not take part does not wait.
    t = start();
    while (rank == last && nranks > 1 && MPI_Wtime() < t + 1e-3)
        ;
    MUST(ncclGroupStart());
    if (rank == 0)
        MUST(ncclSend(a, SMALL, ncclFloat32, last, comm, stream));
    if (rank == last)
        MUST(ncclRecv(b, SMALL, ncclFloat32, 0, comm, stream));
    MUST(ncclGroupEnd());
    late = all_done(t);
    rule((nranks > 1 && (rank == 0 || rank == last)) == (late > 1e-3),
         "a send starts when its receiver has come, and nobody else waits");

    // Two streams of one GPU
    t = start();
    MUST(cublasSaxpy(blas, LARGE, &one, c, 1, d, 1));
    const double sum = all_done(t);
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    MUST(cublasSaxpy(blas, LARGE, &one, c, 1, d, 1));
    const double both = all_done(t);
    rule(both < sum + large - 1e-6 && both > large - 1e-9,
         "a computation and NCCL on two streams overlap");
    // 256 blocks are begun at once where there are 128 multiprocessors, and in two rounds
    // where there are 100.
    const double sums = 1.5 * 2 * 64 * 64 * 20000 / 50.9e12;
    float *buffers[] = {a, c, d};
    cudaEvent_t between[] = {begin, end};
    const double alone = beside(NULL, blas, between, buffers);
    rule(near(beside(narrow, blas, between, buffers), alone) &&
             near(beside(comm, blas, between, buffers), alone + (nranks > 1) * sums),
         "a product takes longer if NCCL has multiprocessors that its blocks need");
    t = start();
    MUST(cublasSaxpy(blas, LARGE, &one, c, 1, d, 1));
    MUST(cudaEventRecord(end, other));
    MUST(cudaStreamWaitEvent(stream, end, 0));
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    rule(all_done(t) > sum + large - 10e-6, "what an event orders does not overlap");
    rule(cudaEventQuery(end) == cudaSuccess, "an event that is over is over");

    // 50.9 Tflop/s, a small product half as long again; and 4244 GB/s
    const double pass = LARGE / 2 * 4.0 / 4244e9;
    rule(near(more(blas, 'g', 20000, c, d), sums), "a product takes as long as its sums");
    rule(near(more(blas, 'a', LARGE / 2, c, d), 3 * pass) &&
             near(more(blas, 's', LARGE / 2, c, d), 2 * pass) &&
             near(more(blas, 'c', LARGE / 2, c, d), 2 * pass) &&
             near(more(blas, 'n', LARGE / 2, c, d), pass),
         "cuBLAS's other calls take as long as their bytes");

    // One communicator, two streams; two communicators
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    MUST(ncclAllReduce(b, b, LARGE, ncclFloat32, ncclSum, comm, other));
    double one_comm = all_done(t);
    rule(one_comm > 2 * large - 12e-6,
         "operations of one communicator follow one another");
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    MUST(ncclAllReduce(b, b, SMALL, ncclFloat32, ncclSum, second, other));
    double two = all_done(t);
    rule(two < large + small && two > large - 1e-9, "those of two communicators do not");
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    MUST(ncclAllReduce(b, b, LARGE, ncclFloat32, ncclSum, second, other));
    two = all_done(t);
    rule(nranks == 1 || (two > 1.2 * large && two < one_comm + 4e-6),
         "but they share the link, if it is too slow for both");

    // Events
    t = start();
    MUST(cudaEventRecord(begin, stream));
    for (int i = 0; i < 10; i++)
        MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    MUST(cudaEventRecord(end, stream));
    double queued = MPI_Wtime() - t;
    MUST(cudaEventSynchronize(end));
    double waited = MPI_Wtime() - t;
    MUST(cudaEventElapsedTime(&ms, begin, end));
    rule(queued < 1e-4, "a call returns before its work is done");
    rule(fabs(waited - ms * 1e-3) < 1e-5, "events and MPI_Wtime agree");
    long polls = 0;
    t = start();
    MUST(ncclAllReduce(a, a, LARGE, ncclFloat32, ncclSum, comm, stream));
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        polls++;
    double polled = MPI_Wtime() - t;
    rule(polls > 1 && polled >= large - 4e-6 && polled < large + 4e-6,
         "who asks again and again gets there, too");

    // Copies
    t = start();
    MUST(cudaMemcpyAsync(b, a, LARGE * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    double within = all_done(t);
    float *host = malloc(LARGE * sizeof(float));
    t = start();
    MUST(cudaMemcpyAsync(host, a, LARGE * sizeof(float), cudaMemcpyDeviceToHost, stream));
    double out = all_done(t);
    rule(out > 3 * within, "a copy to the host is slower than one within the GPU");
    if (ndevices > 1) {
        const int next = (rank + 1) % ndevices;
        MUST(cudaSetDevice(next));
        float *there = allocate(LARGE * sizeof(float));
        MUST(cudaSetDevice(rank % ndevices));
        t = start();
        MUST(cudaMemcpyAsync(there, a, LARGE * sizeof(float), cudaMemcpyDefault, stream));
        double staged = all_done(t);
        MUST(cudaDeviceEnablePeerAccess(next, 0));
        t = start();
        MUST(cudaMemcpyAsync(there, a, LARGE * sizeof(float), cudaMemcpyDefault, stream));
        double direct = all_done(t);
        rule(staged > 3 * direct && direct > within,
             "one to another GPU is faster with peer access");
        rule(nranks == 1 || near(copy_of_opened(b, a, LARGE * sizeof(float)), direct),
             "one of another process's memory takes the link between GPUs");
        MUST(cudaFree(there));
    }

    // MPI
    t = start();
    while (rank == 0 && MPI_Wtime() < t + 1e-3)
        ;
    MPI_Bcast(&polls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    rule(MPI_Wtime() - t >= 1e-3, "nobody gets a broadcast before its root has sent it");
    t = start();
    while (rank == last && nranks > 1 && MPI_Wtime() < t + 1e-3)
        ;
    MPI_Bcast(&polls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    late = MPI_Wtime() - t;
    rule((rank == last && nranks > 1) == (late >= 1e-3),
         "and one late receiver makes nobody else late");
    MPI_Request request = MPI_REQUEST_NULL;
    double sent = 0;
    t = start();
    while (rank == 0 && MPI_Wtime() < t + 1e-3)
        ;
    if (rank > 0)
        MPI_Irecv(&sent, 1, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, &request);
    for (int r = 1; rank == 0 && r < nranks; r++) {
        sent = MPI_Wtime();
        MPI_Send(&sent, 1, MPI_DOUBLE, r, 9, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    rule(MPI_Wtime() >= sent, "MPI_Irecv gets no message before it was sent");
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    t = start();
    while (rank == 0 && MPI_Wtime() < t + 1e-3)
        ;
    MPI_Barrier(node);
    rule(MPI_Wtime() - t >= 1e-3,
         "nor does anybody leave a barrier, of one node's ranks either");
    MPI_Comm_free(&node);
    rule(MPI_Wtick() > 0 && MPI_Wtick() < 1e-6, "MPI_Wtick");

    free(host);
    MUST(ncclCommDestroy(narrow));
    MUST(ncclCommDestroy(second));
    MUST(cublasDestroy(blas));
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
    MUST(cudaFree(d));
    close_all();
    return 0;
}
