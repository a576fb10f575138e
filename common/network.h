/*
 * network.h: the small network that the training lessons train.
 *
 * It is a deep linear network: L layers, each of which multiplies by a matrix of weights.
 *
 *     forward    y  = x · W       x: samples x in, W: in x out, y: samples x out
 *     gradient   dW = xᵀ · dy     how the loss changes with each weight
 *     backward   dx = dy · Wᵀ     how it changes with the input; this is the dy of the
 *                                 previous layer
 *
 * There is no activation function between the layers, so matrix products are all that it
 * needs, and cuBLAS has those. The loss is half the squared distance between the output
 * and the target, averaged over the samples.
 *
 * This file has what one rank computes for one layer. The order of the layers, what
 * travels between ranks and what waits for what is in the lessons.
 *
 * All matrices are stored by rows, as in C: one sample after the other. cuBLAS stores by
 * columns, so it sees each of them transposed, and computes yᵀ = Wᵀ · xᵀ.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "lesson.h"

#include <cublas_v2.h>
#include <math.h>

enum { NETWORK_LAYERS = 64 }; // at most

struct network {
    size_t layers, width; // L matrices of width x width weights
    size_t batch;         // samples in a step, of all ranks together
    size_t steps;
    // In GPU memory. The layers follow one another without gaps, so weight[0] is also the
    // start of all weights.
    float *weight[NETWORK_LAYERS], *gradient[NETWORK_LAYERS], *momentum[NETWORK_LAYERS];
    // activation[l] is the input of layer l, and activation[L] the output of the network:
    // samples x width numbers each.
    float *activation[NETWORK_LAYERS + 1];
    float *wanted;   // the target: what the output should be
    float *distance; // between the two, one number per step
};

/* The options of a training lesson: first the network's, then its own. */
static struct lesson_option network_known[LESSON_OPTIONS + 1];

/* For mistakes that only the lesson can find. Rank 0 prints the message, and every rank
 * ends with exit code 2. */
static inline _Noreturn void network_misused(const char *program, const char *format,
                                             ...) {
    char problem[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    lesson_misused(program, network_known, problem);
}

/* Reads the network's options and those of the lesson (NULL if it has none). Values of
 * layers and batch that the lesson has set before become the defaults. Ends with exit
 * code 2 if `nranks` does not divide the batch; a lesson that divides it differently
 * gives 1. */
static inline void network_options(int argc, char **argv, struct network *n, int nranks,
                                   const struct lesson_option *more) {
    const size_t batch = ((size_t)nranks + 167) / (size_t)nranks * (size_t)nranks;
    const struct lesson_option own[] = {
        {"--layers", "L", "number of layers", .number = &n->layers,
         .usual = n->layers ? n->layers : 4, .least = 1, .most = NETWORK_LAYERS},
        {"--width", "W", "numbers per sample; a layer has W x W weights",
         .number = &n->width, .usual = 64, .least = 2, .most = 4096},
        {"--batch", "B", "samples per step, of all ranks together", .number = &n->batch,
         .usual = n->batch ? n->batch : batch, .least = 1, .most = 1 << 24},
        {"--steps", "S", "training steps", .number = &n->steps, .usual = 10, .least = 1,
         .most = 1 << 20}};
    memcpy(network_known, own, sizeof own);
    for (int i = 4; more && more->name && i < LESSON_OPTIONS; i++)
        network_known[i] = *more++;
    lesson_options(argc, argv, network_known);
    if (n->batch % (size_t)nranks != 0)
        network_misused(argv[0], "--batch %zu does not divide among %d ranks", n->batch,
                        nranks);
}

/* The number of weights in all layers. */
static inline size_t network_weights(const struct network *n) {
    return n->layers * n->width * n->width;
}

/* Ends the job unless the GPU has this many bytes free. */
static inline void network_need(size_t bytes) {
    size_t free_bytes, total_bytes;
    CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (bytes > free_bytes)
        lesson_fail(
            "the network needs %.5g GB of GPU memory, and the GPU has %.5g GB free"
            " of %.5g GB\n  Hint: choose fewer --layers, a smaller --width or"
            " --batch.",
            (double)bytes / 1e9, (double)free_bytes / 1e9, (double)total_bytes / 1e9);
}

/* Bytes that network_malloc_samples takes. */
static inline size_t network_samples_bytes(const struct network *n, size_t samples) {
    return (n->layers + 2) * samples * n->width * sizeof(float);
}

/* Allocates only what depends on the number of samples, for a lesson that allocates the
 * weights itself. */
static inline void network_malloc_samples(struct network *n, size_t samples) {
    const size_t bytes = samples * n->width * sizeof(float);
    for (size_t l = 0; l <= n->layers; l++)
        CHECK_CUDA(cudaMalloc((void **)&n->activation[l], bytes));
    CHECK_CUDA(cudaMalloc((void **)&n->wanted, bytes));
    CHECK_CUDA(cudaMalloc((void **)&n->distance, n->steps * sizeof(float)));
    CHECK_CUDA(cudaMemset(n->distance, 0, n->steps * sizeof(float)));
    // cudaMemset, here or in the caller, works in the default stream. The lessons'
    // streams do not wait for that one, so the host does.
    CHECK_CUDA(cudaDeviceSynchronize());
}

static inline void network_free_samples(struct network *n) {
    CHECK_CUDA(cudaFree(n->distance));
    CHECK_CUDA(cudaFree(n->wanted));
    for (size_t l = 0; l <= n->layers; l++)
        CHECK_CUDA(cudaFree(n->activation[l]));
}

/* Allocates layers of `one` weights each, their momentum 0, and room for this many
 * samples at a time. */
static inline void network_malloc_layers(struct network *n, size_t one, size_t samples) {
    const size_t model = n->layers * one * sizeof(float);
    network_need(3 * model + network_samples_bytes(n, samples));
    CHECK_CUDA(cudaMalloc((void **)&n->weight[0], model));
    CHECK_CUDA(cudaMalloc((void **)&n->gradient[0], model));
    CHECK_CUDA(cudaMalloc((void **)&n->momentum[0], model));
    CHECK_CUDA(cudaMemset(n->momentum[0], 0, model));
    for (size_t l = 1; l < n->layers; l++) {
        n->weight[l] = n->weight[0] + l * one;
        n->gradient[l] = n->gradient[0] + l * one;
        n->momentum[l] = n->momentum[0] + l * one;
    }
    network_malloc_samples(n, samples); // also waits for the cudaMemset above
}

/* The same with whole layers, of width x width weights. */
static inline void network_malloc(struct network *n, size_t samples) {
    network_malloc_layers(n, n->width * n->width, samples);
}

static inline void network_free(struct network *n) {
    network_free_samples(n);
    CHECK_CUDA(cudaFree(n->momentum[0]));
    CHECK_CUDA(cudaFree(n->gradient[0]));
    CHECK_CUDA(cudaFree(n->weight[0]));
}

/* A pseudo-random number from -1 to 1. It depends only on the arguments (splitmix64). */
static inline float network_number(uint64_t seed, uint64_t place) {
    uint64_t z = (seed + 1) * 0xd1b54a32d192ed03 + place * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (float)(int64_t)((z ^ z >> 31) >> 40) / 8388608 - 1;
}

/* Initial weights, in host memory: the identity, plus noise that depends on `seed`. */
static inline void network_first(const struct network *n, uint64_t seed, float *host) {
    const size_t one = n->width * n->width;
    const float noise = 0.25f / sqrtf((float)n->width);
    for (size_t i = 0; i < n->layers * one; i++)
        host[i] = noise * network_number(seed, i);
    for (size_t l = 0; l < n->layers; l++)
        for (size_t i = 0; i < n->width; i++)
            host[l * one + i * (n->width + 1)] += 1;
}

/* Samples `first`, first + 1, … of the data and their targets, in host memory: each
 * number is to become the mean of itself and the next one. A sample depends only on its
 * number, so the data are the same however many ranks share them. */
static inline void network_samples(const struct network *n, size_t first, size_t count,
                                   float *samples, float *wanted) {
    const uint64_t seed = 12345;
    const size_t width = n->width;
    for (size_t s = 0; s < count; s++, samples += width, wanted += width) {
        for (size_t i = 0; i < width; i++)
            samples[i] = network_number(seed, (first + s) * width + i);
        for (size_t i = 0; i < width; i++)
            wanted[i] = (samples[i] + samples[(i + 1) % width]) / 2;
    }
}

/* Queues the copy of such samples and targets to the GPU. The host memory is not pinned,
 * so cudaMemcpyAsync returns only after it has read it, and it can be freed at once. */
static inline void network_load(const struct network *n, size_t first, size_t count,
                                cudaStream_t stream) {
    const size_t numbers = count * n->width, bytes = numbers * sizeof(float);
    float *samples = lesson_malloc(2 * bytes), *wanted = samples + numbers;
    network_samples(n, first, count, samples, wanted);
    CHECK_CUDA(cudaMemcpyAsync(n->activation[0], samples, bytes, cudaMemcpyHostToDevice,
                               stream));
    CHECK_CUDA(cudaMemcpyAsync(n->wanted, wanted, bytes, cudaMemcpyHostToDevice, stream));
    free(samples);
}

/* y = x · W */
static inline void network_forward(cublasHandle_t blas, size_t in, size_t out,
                                   size_t samples, const float *weight, const float *x,
                                   float *y) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)out, (int)samples,
                             (int)in, &one, weight, (int)out, x, (int)in, &none, y,
                             (int)out));
}

/* Replaces y by dy, the gradient of the loss with respect to y: (y - wanted) / mean_over,
 * where mean_over is the number of samples that the loss is averaged over. Also writes
 * the distance between y and wanted to GPU memory, so the host need not wait for it. */
static inline void network_loss(cublasHandle_t blas, size_t out, size_t samples,
                                size_t mean_over, float *y, const float *wanted,
                                float *distance) {
    const int64_t numbers = (int64_t)(out * samples);
    const float minus = -1, mean = 1.0f / (float)mean_over;
    CHECK_CUBLAS(cublasSaxpy_64(blas, numbers, &minus, wanted, 1, y, 1));
    CHECK_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    CHECK_CUBLAS(cublasSnrm2_64(blas, numbers, y, 1, distance));
    CHECK_CUBLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
    CHECK_CUBLAS(cublasSscal_64(blas, numbers, &mean, y, 1));
}

/* dW = xᵀ · dy, which sums over the samples. Overwrites `gradient`, or adds to it. */
static inline void network_gradient(cublasHandle_t blas, size_t in, size_t out,
                                    size_t samples, const float *x, const float *dy,
                                    bool add, float *gradient) {
    const float one = 1, keep = add ? 1 : 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, (int)out, (int)in,
                             (int)samples, &one, dy, (int)out, x, (int)in, &keep,
                             gradient, (int)out));
}

/* dx = dy · Wᵀ. After network_gradient nothing needs x, so dx may overwrite it. */
static inline void network_backward(cublasHandle_t blas, size_t in, size_t out,
                                    size_t samples, const float *weight, const float *dy,
                                    float *dx) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)in, (int)samples,
                             (int)out, &one, weight, (int)out, dy, (int)out, &none, dx,
                             (int)in));
}

/* momentum = 0.9 · momentum + gradient, then weight -= 0.1 / L · momentum. The rate is
 * divided by the number of layers, because all of them change the output. */
static inline void network_update(cublasHandle_t blas, const struct network *n,
                                  size_t count, const float *gradient, float *momentum,
                                  float *weight) {
    const float one = 1, keep = 0.9f, step = -0.1f / (float)n->layers;
    CHECK_CUBLAS(cublasSscal_64(blas, (int64_t)count, &keep, momentum, 1));
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &one, gradient, 1, momentum, 1));
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &step, momentum, 1, weight, 1));
}

/* Rank 0 prints the loss of the first and the last step and of some in between. The
 * squared distances of all ranks are added up. on_gpu  `parts` distances for each step */
static inline void network_print_distances(const struct network *n, const float *on_gpu,
                                           size_t parts) {
    const size_t distances = n->steps * parts;
    float *distance = lesson_malloc(distances * sizeof *distance);
    double *squares = lesson_malloc(n->steps * sizeof *squares);
    CHECK_CUDA(cudaMemcpy(distance, on_gpu, distances * sizeof *distance,
                          cudaMemcpyDeviceToHost));
    memset(squares, 0, n->steps * sizeof *squares);
    for (size_t i = 0; i < distances; i++)
        squares[i / parts] += (double)distance[i] * distance[i];
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, squares, (int)n->steps, MPI_DOUBLE, MPI_SUM,
                            MPI_COMM_WORLD));
    const size_t apart = n->steps > 5 ? (n->steps + 3) / 5 : 1;
    for (size_t s = 0; lesson_self().rank == 0 && s < n->steps; s++)
        if (s % apart == 0 || s + 1 == n->steps)
            printf("step %-4zu loss %.5f\n", s + 1, squares[s] / 2 / (double)n->batch);
    fflush(stdout);
    free(squares);
    free(distance);
}

/* The same for a rank that takes all its samples of a step at once. */
static inline void network_print_losses(const struct network *n) {
    network_print_distances(n, n->distance, 1);
}

/* A number that is different (nearly always) if any bit of any weight is different. */
static inline uint64_t network_checksum(const float *weights, size_t count) {
    uint64_t sum = 0;
    uint32_t bits;
    for (size_t i = 0; i < count; i++) {
        memcpy(&bits, &weights[i], sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3 + 1;
    }
    return sum;
}

/* Ends the job unless all ranks of `group` have the same weights, bit for bit: then the
 * smallest of their checksums is also the largest. (Lesson 10 does this with NCCL.)
 *   weights  in host memory
 *   when     for the message: "after the last step" */
static inline void network_check_copies(const float *weights, size_t count,
                                        const char *when, MPI_Comm group) {
    const uint64_t mine = network_checksum(weights, count);
    uint64_t smallest, largest;
    CHECK_MPI(MPI_Allreduce(&mine, &smallest, 1, MPI_UINT64_T, MPI_MIN, group));
    CHECK_MPI(MPI_Allreduce(&mine, &largest, 1, MPI_UINT64_T, MPI_MAX, group));
    if (smallest != largest)
        lesson_fail("the ranks' copies of the weights differ %s", when);
}

/* Trains in this process alone, with the whole batch and without communication, and
 * writes the final weights to host memory. */
static inline void network_reference(const struct network *like, float *host) {
    struct network n = *like;
    const size_t w = n.width, weights = network_weights(&n);
    cublasHandle_t blas;
    network_malloc(&n, n.batch);
    CHECK_CUBLAS(cublasCreate(&blas));
    network_first(&n, 0, host);
    CHECK_CUDA(
        cudaMemcpy(n.weight[0], host, weights * sizeof *host, cudaMemcpyHostToDevice));
    for (size_t step = 0; step < n.steps; step++) {
        network_load(&n, step * n.batch, n.batch, NULL);
        for (size_t l = 0; l < n.layers; l++)
            network_forward(blas, w, w, n.batch, n.weight[l], n.activation[l],
                            n.activation[l + 1]);
        network_loss(blas, w, n.batch, n.batch, n.activation[n.layers], n.wanted,
                     &n.distance[step]);
        for (size_t l = n.layers; l-- > 0;) {
            network_gradient(blas, w, w, n.batch, n.activation[l], n.activation[l + 1],
                             false, n.gradient[l]);
            if (l > 0)
                network_backward(blas, w, w, n.batch, n.weight[l], n.activation[l + 1],
                                 n.activation[l]);
        }
        network_update(blas, &n, weights, n.gradient[0], n.momentum[0], n.weight[0]);
    }
    CHECK_CUDA(
        cudaMemcpy(host, n.weight[0], weights * sizeof *host, cudaMemcpyDeviceToHost));
    CHECK_CUBLAS(cublasDestroy(blas));
    network_free(&n);
}

/* The weights that training should end with: rank 0 trains alone, and MPI carries the
 * result to the others. In host memory; the caller frees it. */
static inline float *network_expected(const struct network *n) {
    const size_t count = network_weights(n);
    float *expected = lesson_malloc(count * sizeof *expected);
    if (lesson_self().rank == 0)
        network_reference(n, expected);
    CHECK_MPI(MPI_Bcast(expected, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD));
    return expected;
}

/* Compares this rank's weights with the expected ones, prints the largest difference on
 * any rank and the verdict, and returns the program's exit code. Ranks may have different
 * weights, and different numbers of them.
 *   exact  they must be equal bit for bit
 * Otherwise the ranks have added up the same products in a different order. The rounding
 * error of a sum of B numbers grows with the square root of B, and a weight of about 1
 * takes in one such sum in each of the S steps. So S · √B · 2⁻²³ is allowed. */
static inline int network_verdict(const struct network *n, const float *weights,
                                  const float *expected, size_t count, bool exact) {
    const double bound =
        exact ? 0 : (double)n->steps * sqrt((double)n->batch) * ldexp(1, -23);
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double apart = fabs((double)weights[i] - expected[i]);
        // (NaN is never within the bound.)
        lesson_expect(i, apart <= bound ? expected[i] : weights[i], expected[i]);
        largest = apart > largest ? apart : largest;
    }
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    if (lesson_self().rank == 0)
        printf("largest difference from one process: %.2g, allowed %.2g\n", largest,
               bound);
    return lesson_verdict("weight");
}

#endif
