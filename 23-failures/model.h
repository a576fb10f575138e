/*
 * model.h: what failures trains.
 *
 * Every rank has data, all elements rank + 1, and the weights move towards the mean of
 * the data of those who take part. So it can be said what they must be after each step.
 */
#ifndef MODEL_H
#define MODEL_H

#include "members.h"

#include <cublas_v2.h>
#include <math.h>
#include <signal.h>

enum { COUNT = 1024, STEPS = 12 };

struct model {
    cudaStream_t stream;
    cublasHandle_t blas;
    float *data, *gradient;    // on the GPU, COUNT elements each
    float *weights[2];         // weights[s % 2]: before step s, kept while it runs
    float expected[STEPS + 1]; // what the weights must be before each step
    double last;               // when the last step was done
};

/* Memory on the GPU, with this rank's data, but without weights. */
static inline void model_create(struct model *m, int rank) {
    float host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(rank + 1);
    *m = (struct model){.last = MPI_Wtime()};
    CHECK_CUDA(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&m->blas));
    CHECK_CUBLAS(cublasSetStream(m->blas, m->stream));
    CHECK_CUDA(cudaMalloc((void **)&m->data, 2 * sizeof host));
    CHECK_CUDA(cudaMalloc((void **)&m->weights[0], 2 * sizeof host));
    m->gradient = m->data + COUNT;
    m->weights[1] = m->weights[0] + COUNT;
    CHECK_CUDA(
        cudaMemcpyAsync(m->data, host, sizeof host, cudaMemcpyHostToDevice, m->stream));
    CHECK_CUDA(cudaStreamSynchronize(m->stream));
}

static inline void model_destroy(struct model *m) {
    CHECK_CUDA(cudaFree(m->weights[0]));
    CHECK_CUDA(cudaFree(m->data));
    CHECK_CUBLAS(cublasDestroy(m->blas));
    CHECK_CUDA(cudaStreamDestroy(m->stream));
}

/* Queues the gradient of (weights - data)^2 / 2. */
static inline void model_gradient(struct model *m, int step) {
    const float minus = -1;
    CHECK_CUBLAS(cublasScopy(m->blas, COUNT, m->weights[step % 2], 1, m->gradient, 1));
    CHECK_CUBLAS(cublasSaxpy(m->blas, COUNT, &minus, m->data, 1, m->gradient, 1));
}

/* Queues the step: the gradient is now the sum over all who take part. */
static inline void model_update(struct model *m, const struct members *now) {
    const int step = now->step;
    const float move = -0.5F / (float)now->n;
    float *after = m->weights[(step + 1) % 2], sum = 0;
    CHECK_CUBLAS(cublasScopy(m->blas, COUNT, m->weights[step % 2], 1, after, 1));
    CHECK_CUBLAS(cublasSaxpy(m->blas, COUNT, &move, m->gradient, 1, after, 1));
    for (int i = 0; i < now->n; i++)
        sum += m->expected[step] - (float)(now->ranks[i] + 1);
    m->expected[step + 1] = m->expected[step] + move * sum;
}

/* Prints how step now->step went. If it was done, checks the new weights, and prints
 * their loss as these ranks see it. */
static inline void model_report(struct model *m, const struct members *now, int rank,
                                bool done) {
    const int step = now->step;
    const double seconds = MPI_Wtime() - m->last;
    float host[COUNT];
    double loss = 0;
    if (!done && rank == 0)
        printf("step %2d: not done after %.1f s\n", step, seconds);
    if (!done)
        return;
    CHECK_CUDA(cudaMemcpy(host, m->weights[(step + 1) % 2], sizeof host,
                          cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        lesson_expect((size_t)i, round(1e3 * (double)host[i]) / 1e3,
                      round(1e3 * (double)m->expected[step + 1]) / 1e3);
    for (int i = 0; i < now->n; i++)
        loss += pow((double)host[0] - (now->ranks[i] + 1), 2) / 2 / now->n;
    if (rank == 0)
        printf("step %2d: loss %.4f, %d rank%s, %.1f s\n", step, loss, now->n,
               now->n == 1 ? "" : "s", seconds);
    fflush(stdout);
    m->last = MPI_Wtime();
}

static inline void model_too_late(int signal) {
    const char why[] = "A rank was lost after its last step: given up after 60 s.\n";
    _exit(write(STDERR_FILENO, why, sizeof why - 1) < 0 ? signal : 1);
}

/* The verdict of those who are there at the end. MPI's collectives in lesson_verdict
 * would wait for a rank that is gone. From here on the program has 60 s, because no call
 * of MPI has a time limit, and MPI_Finalize waits for all. */
static inline int model_verdict(const struct members *there, int rank, int nranks) {
    int exit_code = there->checked > 0 && there->wrong == 0 ? 0 : 1;
    signal(SIGALRM, model_too_late);
    alarm(60);
    if (there->n == nranks)
        return lesson_verdict("weight");
    if (member(there, rank) < 0) // come too late
        return 1;
    if (rank == 0)
        printf("%s: %d rank%s left, %llu weights checked, %llu wrong\n",
               exit_code ? "FAILED" : "OK", there->n, there->n == 1 ? "" : "s",
               there->checked, there->wrong);
    fflush(stdout);
    for (int i = 1; rank == 0 && i < there->n; i++) // nobody ends before it is printed
        tell(there->ranks[i], &exit_code, sizeof exit_code, TAG_NEWS);
    if (rank != 0)
        must_hear(&exit_code, sizeof exit_code, TAG_NEWS, 60);
    return exit_code;
}

#endif
