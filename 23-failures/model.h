/*
 * model.h: what failures trains.
 *
 * Every rank has data, all elements rank + 1, and the weights move towards the mean of
 * the data of those who take part. So it can be said what they must be after each step.
 */
#ifndef MODEL_H
#define MODEL_H

#include "agree.h"

#include <cublas_v2.h>
#include <math.h>

enum { COUNT = 1024, STEPS = 12 };
static const float model_rate = 0.5F;

struct model {
    cudaStream_t stream;
    cublasHandle_t blas;
    float *data, *gradient;    // on the GPU, COUNT elements each
    float *weights[2];         // weights[s % 2]: before step s, kept while it runs
    float expected[STEPS + 1]; // what the weights must be before each step
    double last;               // when the last step was done
};

/* Memory on the GPU, with this rank's data, but without weights. */
static inline void model_allocate(struct model *m, int rank) {
    float host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(rank + 1);
    CHECK_CUDA(cudaMalloc((void **)&m->data, 2 * sizeof host));
    CHECK_CUDA(cudaMalloc((void **)&m->weights[0], 2 * sizeof host));
    m->gradient = m->data + COUNT;
    m->weights[1] = m->weights[0] + COUNT;
    CHECK_CUDA(
        cudaMemcpyAsync(m->data, host, sizeof host, cudaMemcpyHostToDevice, m->stream));
    CHECK_CUDA(cudaStreamSynchronize(m->stream));
}

static inline void model_free(struct model *m) {
    CHECK_CUDA(cudaFree(m->weights[0]));
    CHECK_CUDA(cudaFree(m->data));
}

/* All ranks start with weights of 0. */
static inline void model_create(struct model *m, int rank) {
    *m = (struct model){.stream = NULL};
    CHECK_CUDA(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&m->blas));
    CHECK_CUBLAS(cublasSetStream(m->blas, m->stream));
    model_allocate(m, rank);
    CHECK_CUDA(
        cudaMemsetAsync(m->weights[0], 0, COUNT * sizeof *m->weights[0], m->stream));
    lesson_say_whose_times();
    m->last = MPI_Wtime();
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
    const float move = -model_rate / (float)now->n;
    float *after = m->weights[(step + 1) % 2];
    CHECK_CUBLAS(cublasScopy(m->blas, COUNT, m->weights[step % 2], 1, after, 1));
    CHECK_CUBLAS(cublasSaxpy(m->blas, COUNT, &move, m->gradient, 1, after, 1));
    float sum = 0;
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
    if (!done && rank == 0)
        printf("step %2d: not done after %.1f s\n", step, seconds);
    if (!done)
        return;
    float host[COUNT];
    double loss = 0;
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

/* A new rank: from rank 0 it hears the unique id, who takes part, and what the weights
 * must be. From now on it is one of those who take part. Like a new process, it has no
 * weights. */
static inline void model_welcome(struct model *m, struct members *now, int rank,
                                 int newcomer, ncclUniqueId *id) {
    struct {
        ncclUniqueId id;
        struct members now;
        float expected;
    } news = {.now = *now};
    if (rank == 0) {
        news.id = *id;
        news.expected = m->expected[now->step];
        agree_send(newcomer, &news, sizeof news, AGREE_ID);
    } else if (rank == newcomer) {
        agree_receive(&news, sizeof news);
        *id = news.id;
        *now = news.now;
        m->expected[now->step] = news.expected;
        model_free(m);
        model_allocate(m, rank);
    }
    now->ranks[now->n++] = newcomer;
}

static inline void model_destroy(struct model *m) {
    model_free(m);
    CHECK_CUBLAS(cublasDestroy(m->blas));
    CHECK_CUDA(cudaStreamDestroy(m->stream));
}

#endif
