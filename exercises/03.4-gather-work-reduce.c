//: kind build
//: title Gather, work, reduce
//: trains an all-gather, work of its own, and an all-reduce in one stream
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllGather=1 ncclAllReduce=1
//: starter loss is … expected
//: learned A step of sharded training is a chain in one stream: gather the weights, use them, reduce the result.
//: why The stream keeps the order, so the work finds all weights, and the all-reduce finds the work's result.
//: hint Three things happen one after the other. Which call brings all parts together, and which one gives
//:   all ranks the mean?
//: hint ncclAllGather's count is what one rank sends. local_loss() needs `weights`, with all elements.
//: hint ncclAllGather(part, weights, count, …), local_loss(weights, …, loss, stream), then ncclAllReduce of the one float in
//:   `loss`, with ncclAvg.
//: file

/*
 * The weights are divided: each rank has `count` of them in `part`, and rank r's are the
 * r-th part of all. local_loss() needs all of them, and says how good they are for this
 * rank's data. Write a step: bring all weights into `weights` on every rank, queue
 * local_loss(), and leave in `loss`, on every rank, the mean of all ranks' losses.
 *
 * All pointers are to the GPU's memory. All work is queued on `stream`; don't wait.
 */
#include "lesson.h"

/* Queues on `stream`: *loss = the loss of `total` weights for this rank's data. */
void local_loss(const float *weights, size_t total, float *loss, cudaStream_t stream);

void step(const float *part, size_t count, float *weights, float *loss, int nranks,
          ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Yours: three calls.
    //: solution
    const size_t total = count * (size_t)nranks;
    CHECK_NCCL(ncclAllGather(part, weights, count, ncclFloat32, comm, stream));
    local_loss(weights, total, loss, stream);
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclAvg, comm, stream));
    //: wrong own-part: NCCL CHECK: memory
    local_loss(part, count * (size_t)nranks, loss, stream);
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclAvg, comm, stream));
    //: wrong sum: This is the sum
    const size_t total = count * (size_t)nranks;
    CHECK_NCCL(ncclAllGather(part, weights, count, ncclFloat32, comm, stream));
    local_loss(weights, total, loss, stream);
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, comm, stream));
    //: wrong no-reduce: This is this rank's own loss
    const size_t total = count * (size_t)nranks;
    CHECK_NCCL(ncclAllGather(part, weights, count, ncclFloat32, comm, stream));
    local_loss(weights, total, loss, stream);
    //: wrong total-gathered: NCCL CHECK: memory
    const size_t total = count * (size_t)nranks;
    CHECK_NCCL(ncclAllGather(part, weights, total, ncclFloat32, comm, stream));
    local_loss(weights, total, loss, stream);
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclAvg, comm, stream));
    //: wrong some-weights: local_loss is given
    CHECK_NCCL(ncclAllGather(part, weights, count, ncclFloat32, comm, stream));
    local_loss(weights, count, loss, stream);
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclAvg, comm, stream));
    //: wrong work-first: loss is
    const size_t total = count * (size_t)nranks;
    local_loss(weights, total, loss, stream);
    CHECK_NCCL(ncclAllGather(part, weights, count, ncclFloat32, comm, stream));
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclAvg, comm, stream));
    //: end
}
//: check
#include <math.h>

void local_loss(const float *weights, size_t total, float *loss, cudaStream_t stream);
void step(const float *part, size_t count, float *weights, float *loss, int nranks,
          ncclComm_t comm, cudaStream_t stream);

static size_t all_weights;

static float loss_of(const float *weights, int rank) {
    float sum = 0;
    for (size_t i = 0; i < all_weights; i++)
        sum += weights[i] * (float)(1 + (i + (size_t)rank) % 3);
    return sum;
}

void local_loss(const float *weights, size_t total, float *loss, cudaStream_t stream) {
    if (!check_that(total == all_weights,
                    "local_loss is given %zu weights, and there are %zu", total,
                    all_weights))
        return;
    float *host = check_host(total * sizeof *host), value;
    CHECK_CUDA(cudaMemcpyAsync(host, weights, total * sizeof *host,
                               cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    value = loss_of(host, check_rank);
    CHECK_CUDA(
        cudaMemcpyAsync(loss, &value, sizeof value, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

void check(void) {
    const size_t counts[] = {2, 1, 50};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        all_weights = count * (size_t)check_nranks;
        check_case("%zu weights in all", all_weights);
        float *all = check_host(all_weights * sizeof *all), zero = 0, mean = 0, got;
        float *part = check_device(bytes), *loss = check_device(sizeof *loss);
        float *weights = check_device(all_weights * sizeof *all);
        memset(all, 0, all_weights * sizeof *all);
        check_put(weights, all, all_weights * sizeof *all);
        check_put(loss, &zero, sizeof zero);
        for (size_t i = 0; i < all_weights; i++)
            all[i] = (float)check_data(0, i);
        check_put(part, all + (size_t)check_rank * count, bytes);
        for (int r = 0; r < check_nranks; r++)
            mean += loss_of(all, r) / (float)check_nranks;
        step(part, count, weights, loss, check_nranks, check_comm, check_stream);
        check_get(&got, loss, sizeof got);
        const float own = loss_of(all, check_rank), off = 1e-4f * mean;
        const char *why = "";
        if (check_nranks > 1 && fabsf(got - mean * (float)check_nranks) < off)
            why = "\n  This is the sum of all ranks' losses.";
        else if (got == own)
            why = "\n  This is this rank's own loss.";
        check_that(fabsf(got - mean) < off, "loss is %g, expected %g%s", got, mean, why);
        check_buffer("weights", weights, all, all_weights, ncclFloat32);
    }
}
