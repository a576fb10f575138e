/*
 * So many all-reduces of so many elements. Rank 0 prints how long one of them takes in µs
 * by MPI_Wtime. With "really" copies and additions stand between them, and it prints how
 * many seconds of the processor the shortest of so many rounds really took.
 *
 *     mpirun -np N ./work TIMES COUNT [really]
 */
#include "clock_test.h"

#include <cublas_v2.h>
#include <time.h>

static double really(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    open_all(&argc, &argv);
    const int times = argc > 1 ? atoi(argv[1]) : 1;
    const size_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const float one = 1;
    float *a = allocate(count * sizeof(float)), *b = allocate(count * sizeof(float));
    cublasHandle_t blas;
    MUST(cublasCreate(&blas));
    MUST(cublasSetStream(blas, stream));
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime(), shortest = 1e9;
    for (int i = 0; i < times; i++) {
        double round = -really();
        for (int k = 0; k < (argc > 3 ? 50 : 1); k++) {
            MUST(ncclAllReduce(a, b, count, ncclFloat32, ncclSum, comm, stream));
            if (argc <= 3)
                continue;
            MUST(cublasSaxpy(blas, (int)count, &one, b, 1, a, 1));
            MUST(cudaMemcpyAsync(b, a, count * sizeof(float), cudaMemcpyDefault, stream));
            if (k % 10 == 9)
                MUST(cudaStreamSynchronize(stream));
        }
        if (argc > 3)
            MPI_Barrier(MPI_COMM_WORLD);
        round += really();
        shortest = round < shortest ? round : shortest;
    }
    MUST(cudaStreamSynchronize(stream));
    seconds += MPI_Wtime();
    if (rank == 0 && argc > 3)
        printf("%.6f\n", shortest);
    else if (rank == 0)
        printf("all-reduce: %.3f\n", seconds / times * 1e6);
    MUST(cublasDestroy(blas));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    close_all();
    return 0;
}
