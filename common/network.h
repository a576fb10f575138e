/*
 * network.h: the small network that the training lessons train.
 *
 * A deep linear network: Y = X · W1 · W2 · … · WL. It has no activation function, so that
 * the products of cuBLAS are all it needs; everything that is hard about training on many
 * GPUs is in it all the same. The loss is half the mean squared distance between Y and
 * what was wanted, and the weights follow their gradients with momentum.
 *
 * Here stands what one rank computes, a layer at a time. In which order, what travels
 * between the ranks and who waits for whom stands in the lessons.
 *
 * A matrix of samples has one sample behind the other in memory, each `in` or `out`
 * numbers long. To cuBLAS, which stores matrices by columns, a sample is a column; so a
 * layer reads y = W · x there, with W of `out` rows and `in` columns.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "lesson.h"

#include <cublas_v2.h>
#include <math.h>

enum { NETWORK_LAYERS = 64 }; // at most

struct network {
    size_t layers, width; // L matrices of width x width weights
    size_t slice; // of the width, between layers 0 and 1, 2 and 3, …; 0: all of it
    size_t batch; // samples in a step, of all ranks together
    size_t steps;
    size_t parts; // in which a rank takes a step's samples, one by one; 0: all at once
    // What network_malloc makes, in memory of the GPU: the matrices of all layers lie one
    // behind the other, so that weight[0] is also the beginning of all weights.
    float *weight[NETWORK_LAYERS], *gradient[NETWORK_LAYERS], *momentum[NETWORK_LAYERS];
    // The inputs of each layer, and what comes out of the last: samples x width numbers.
    float *activation[NETWORK_LAYERS + 1];
    float *wanted;   // what should have come out
    float *distance; // from that, a number for each part of each step; 0 at first
};

/* --- The command line ------------------------------------------------------------- */

/* The options that a lesson on training has: the network's, and behind them its own. */
LESSON_FUNCTION struct lesson_option network_known[LESSON_OPTIONS + 1];

/* What only the lesson can find wrong. Rank 0 says it; every rank ends: exit code 2. */
LESSON_FUNCTION _Noreturn void network_misused(const char *program, const char *format,
                                               ...) {
    char problem[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    lesson_misused(program, network_known, problem);
}

/* Reads the network's options and those of the lesson (NULL: it has none of its own).
 * What the lesson has set of layers and batch is the default. Exit code 2 if the batch
 * does not divide among `nranks`; 1: the lesson divides it in a way of its own. */
LESSON_FUNCTION void network_options(int argc, char **argv, struct network *n, int nranks,
                                     const struct lesson_option *more) {
    const size_t batch = ((size_t)nranks + 167) / (size_t)nranks * (size_t)nranks;
    const struct lesson_option own[] = {
        {"--layers", "L", "layers of the network", .number = &n->layers,
         .usual = n->layers ? n->layers : 4, .least = 1, .most = NETWORK_LAYERS},
        {"--width", "W", "each of W x W weights", .number = &n->width, .usual = 64,
         .least = 2, .most = 4096},
        {"--batch", "B", "samples in a step, of all ranks together", .number = &n->batch,
         .usual = n->batch ? n->batch : batch, .least = 1, .most = 1 << 24},
        {"--steps", "S", "steps of the training", .number = &n->steps, .usual = 10,
         .least = 1, .most = 1 << 20}};
    memcpy(network_known, own, sizeof own);
    for (int i = 4; more && more->name && i < LESSON_OPTIONS; i++)
        network_known[i] = *more++;
    lesson_options(argc, argv, network_known);
    if (n->batch % (size_t)nranks != 0)
        network_misused(argv[0], "--batch %zu does not divide among %d ranks", n->batch,
                        nranks);
}

/* --- Memory ----------------------------------------------------------------------- */

/* The weights of all layers, or of one. */
LESSON_FUNCTION size_t network_weights(const struct network *n) {
    return n->layers * n->width * (n->slice ? n->slice : n->width);
}

/* Ends the job unless the GPU has so many bytes free. */
LESSON_FUNCTION void network_need(size_t bytes) {
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
LESSON_FUNCTION size_t network_samples_bytes(const struct network *n, size_t samples) {
    return (n->layers + 2) * samples * n->width * sizeof(float);
}

/* Allocates room for so many samples at a time, without weights: for a rank that keeps
 * these in a way of its own. */
LESSON_FUNCTION void network_malloc_samples(struct network *n, size_t samples) {
    const size_t bytes = samples * n->width * sizeof(float);
    for (size_t l = 0; l <= n->layers; l++)
        CHECK_CUDA(cudaMalloc((void **)&n->activation[l], bytes));
    CHECK_CUDA(cudaMalloc((void **)&n->wanted, bytes));
    const size_t distances = n->steps * (n->parts ? n->parts : 1) * sizeof(float);
    CHECK_CUDA(cudaMalloc((void **)&n->distance, distances));
    CHECK_CUDA(cudaMemset(n->distance, 0, distances));
    // What was set to 0, here or before, was set in the default stream: other streams do
    // not wait for that.
    CHECK_CUDA(cudaDeviceSynchronize());
}

LESSON_FUNCTION void network_free_samples(struct network *n) {
    CHECK_CUDA(cudaFree(n->distance));
    CHECK_CUDA(cudaFree(n->wanted));
    for (size_t l = 0; l <= n->layers; l++)
        CHECK_CUDA(cudaFree(n->activation[l]));
}

/* Allocates the whole model, its momentum 0, and room for so many samples at a time. */
LESSON_FUNCTION void network_malloc(struct network *n, size_t samples) {
    const size_t one = network_weights(n) / n->layers;
    const size_t model = network_weights(n) * sizeof(float);
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
    network_malloc_samples(n, samples); // and waits for the 0 above
}

LESSON_FUNCTION void network_free(struct network *n) {
    network_free_samples(n);
    CHECK_CUDA(cudaFree(n->momentum[0]));
    CHECK_CUDA(cudaFree(n->gradient[0]));
    CHECK_CUDA(cudaFree(n->weight[0]));
}

/* --- Numbers ---------------------------------------------------------------------- */

/* A number from -1 to 1 that depends on nothing but the arguments (splitmix64). */
LESSON_FUNCTION float network_number(uint64_t seed, uint64_t place) {
    uint64_t z = (seed + 1) * 0xd1b54a32d192ed03 + place * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (float)(int64_t)((z ^ z >> 31) >> 40) / 8388608 - 1;
}

/* First weights, in host memory: each layer hands on what it gets, with some noise, which
 * is another one for each seed. */
LESSON_FUNCTION void network_first(const struct network *n, uint64_t seed, float *host) {
    const size_t one = n->width * n->width;
    const float noise = 0.25f / sqrtf((float)n->width);
    for (size_t i = 0; i < n->layers * one; i++)
        host[i] = (i % one % (n->width + 1) == 0) + noise * network_number(seed, i);
}

/* Samples `first`, first + 1, … of the data, and what is wanted of them: each number is
 * to become the mean of itself and the one behind it. In host memory. A sample depends on
 * its number only, so that every number of ranks trains on the same data. */
LESSON_FUNCTION void network_samples(const struct network *n, size_t first, size_t count,
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

/* Queues the copy of such samples to the GPU: the inputs of the first layer, and what is
 * wanted. From memory that is not pinned, so it returns when they have been read. */
LESSON_FUNCTION void network_load(const struct network *n, size_t first, size_t count,
                                  cudaStream_t stream) {
    const size_t numbers = count * n->width, bytes = numbers * sizeof(float);
    float *samples = lesson_malloc(2 * bytes), *wanted = samples + numbers;
    network_samples(n, first, count, samples, wanted);
    CHECK_CUDA(cudaMemcpyAsync(n->activation[0], samples, bytes, cudaMemcpyHostToDevice,
                               stream));
    CHECK_CUDA(cudaMemcpyAsync(n->wanted, wanted, bytes, cudaMemcpyHostToDevice, stream));
    free(samples);
}

/* --- One layer -------------------------------------------------------------------- */

/* y = W · x, for all samples. */
LESSON_FUNCTION void network_forward(cublasHandle_t blas, size_t in, size_t out,
                                     size_t samples, const float *weight, const float *x,
                                     float *y) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)out, (int)samples,
                             (int)in, &one, weight, (int)out, x, (int)in, &none, y,
                             (int)out));
}

/* The derivative of the loss by y, in place of y: (y - wanted) / mean_over, the
 * number of samples that the loss is a mean of. And the distance of y from what was
 * wanted, into memory of the GPU: the host does not wait for it. */
LESSON_FUNCTION void network_loss(cublasHandle_t blas, size_t out, size_t samples,
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

/* The derivative by the weights: dy · xᵀ, added up over the samples. It is put in place
 * of what is in gradient, or added to it. */
LESSON_FUNCTION void network_gradient(cublasHandle_t blas, size_t in, size_t out,
                                      size_t samples, const float *x, const float *dy,
                                      bool add, float *gradient) {
    const float one = 1, keep = add ? 1 : 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, (int)out, (int)in,
                             (int)samples, &one, dy, (int)out, x, (int)in, &keep,
                             gradient, (int)out));
}

/* The derivative by what came in, for the layer before: dx = Wᵀ · dy. Once the gradient
 * is there x is not needed any more, and dx may take its place. */
LESSON_FUNCTION void network_backward(cublasHandle_t blas, size_t in, size_t out,
                                      size_t samples, const float *weight,
                                      const float *dy, float *dx) {
    const float one = 1, none = 0;
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)in, (int)samples,
                             (int)out, &one, weight, (int)out, dy, (int)out, &none, dx,
                             (int)in));
}

/* momentum = 0.9 · momentum + gradient; weight -= rate · momentum. All layers together
 * make the step, so each takes its part of the rate. */
LESSON_FUNCTION void network_update(cublasHandle_t blas, const struct network *n,
                                    size_t count, const float *gradient, float *momentum,
                                    float *weight) {
    const float one = 1, keep = 0.9f, step = -0.1f / (float)n->layers;
    CHECK_CUBLAS(cublasSscal_64(blas, (int64_t)count, &keep, momentum, 1));
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &one, gradient, 1, momentum, 1));
    CHECK_CUBLAS(cublasSaxpy_64(blas, (int64_t)count, &step, momentum, 1, weight, 1));
}

/* --- The result ------------------------------------------------------------------- */

/* Prints the loss of the first and the last step and some between; rank 0 does. The loss
 * is over the samples of all ranks that have some. */
LESSON_FUNCTION void network_print_losses(const struct network *n) {
    const size_t parts = n->parts ? n->parts : 1, distances = n->steps * parts;
    float *distance = lesson_malloc(distances * sizeof *distance);
    double *squares = lesson_malloc(n->steps * sizeof *squares);
    CHECK_CUDA(cudaMemcpy(distance, n->distance, distances * sizeof *distance,
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

/* A number that differs if any bit of any weight does (nearly always). */
LESSON_FUNCTION uint64_t network_checksum(const float *weights, size_t count) {
    uint64_t sum = 0;
    uint32_t bits;
    for (size_t i = 0; i < count; i++) {
        memcpy(&bits, &weights[i], sizeof bits);
        sum = (sum ^ bits) * 0x100000001b3 + 1;
    }
    return sum;
}

/* Ends the job unless all ranks of `group` have the same weights, to the last bit: then
 * the smallest of their checksums is the largest as well. (Lesson 10 has it with NCCL.)
 *   weights  in host memory
 *   when     for the message: "after the last step" */
LESSON_FUNCTION void network_check_copies(const float *weights, size_t count,
                                          const char *when, MPI_Comm group) {
    const uint64_t mine = network_checksum(weights, count);
    uint64_t smallest, largest;
    CHECK_MPI(MPI_Allreduce(&mine, &smallest, 1, MPI_UINT64_T, MPI_MIN, group));
    CHECK_MPI(MPI_Allreduce(&mine, &largest, 1, MPI_UINT64_T, MPI_MAX, group));
    if (smallest != largest)
        lesson_fail("the ranks' copies of the weights differ %s", when);
}

/* The same training in one process, with the whole batch and without any communication:
 * the weights after the last step, into host memory. */
LESSON_FUNCTION void network_reference(const struct network *like, float *host) {
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

/* What the weights of all layers should be on every rank: rank 0 trains the reference,
 * and MPI carries it. In host memory, to be given to free(). */
LESSON_FUNCTION float *network_expected(const struct network *n) {
    const size_t count = network_weights(n);
    float *expected = lesson_malloc(count * sizeof *expected);
    if (lesson_self().rank == 0)
        network_reference(n, expected);
    CHECK_MPI(MPI_Bcast(expected, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD));
    return expected;
}

/* Compares the weights that a rank has with those that it should have (each rank may have
 * others, and its own count of them), prints how far they are apart and the verdict, and
 * returns the program's exit code.
 *
 * `exact`: they must be equal bit for bit. Otherwise each gradient was the sum of the
 * same products in another order. A sum of B rounded numbers depends on it: its error
 * grows with the root of B. So a weight, which is about 1 and takes S such sums in, may
 * differ by S times the root of B times the last place of 1. */
LESSON_FUNCTION int network_verdict(const struct network *n, const float *weights,
                                    const float *expected, size_t count, bool exact) {
    const double bound =
        exact ? 0 : (double)n->steps * sqrt((double)n->batch) * ldexp(1, -23);
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double apart = fabs((double)weights[i] - expected[i]);
        // (A weight that is not a number is never within the bound.)
        lesson_expect(i, apart <= bound ? expected[i] : weights[i], expected[i]);
        largest = apart > largest ? apart : largest;
    }
    CHECK_MPI(
        MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    if (lesson_self().rank == 0)
        printf("weights beside those of one process: at most %.2g apart, allowed %.2g\n",
               largest, bound);
    return lesson_verdict("weight");
}

#endif
