//: kind repair
//: title Four ranks yes, five no
//: trains the same number of calls on all ranks
//: ranks 3 4 | 1 2 5 7 8
//: starter NCCL CHECK: deadlock
//: learned Ranks that run out of data still make the calls that the others make, with nothing to add.
//: why All ranks make as many rounds as the one with most batches; whoever has none left brings zeros.
//: hint 12 batches on 4 ranks, and then on 5: how many rounds does each rank make?
//: hint The number of rounds must be the same everywhere: that of the rank that has most batches.
//: hint A rank that has no batch in the last round brings zeros: cudaMemsetAsync on `stream`, before the call.
//: wrong mean s/ncclSum/ncclAvg/: ncclAvg divides by all ranks, also by those without a batch
//: wrong bytes-forgotten s/count . sizeof.float., stream/count, stream/: of the sum in update … is
//: file

/*
 * "Our training runs on 4 ranks, and hangs at the end of the epoch on 5. We have 12
 * batches."
 *
 * Batch b belongs to rank b % nranks. In each round every rank adds its batch's gradient
 * to those of the others: gradient() puts it into `buf` (in the GPU's memory, queued on
 * `stream`), and update() uses the sum. Repair the loop for any number of batches. All
 * ranks must update alike.
 */
#include "lesson.h"

void gradient(float *buf, size_t count, int batch, cudaStream_t stream);
void update(const float *sum, size_t count, cudaStream_t stream);

void epoch(float *buf, size_t count, int nbatches, int rank, int nranks, ncclComm_t comm,
           cudaStream_t stream) {
    //: starter
    for (int batch = rank; batch < nbatches; batch += nranks) {
        gradient(buf, count, batch, stream);
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: solution
    for (int first = 0; first < nbatches; first += nranks) {
        if (first + rank < nbatches)
            gradient(buf, count, first + rank, stream);
        else
            CHECK_CUDA(cudaMemsetAsync(buf, 0, count * sizeof(float), stream));
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: wrong stale-buffer: in update … is … what `buf` held
    for (int first = 0; first < nbatches; first += nranks) {
        if (first + rank < nbatches)
            gradient(buf, count, first + rank, stream);
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: wrong wrap-around: Ranks without a batch add one a second time.
    for (int first = 0; first < nbatches; first += nranks) {
        gradient(buf, count, (first + rank) % nbatches, stream);
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: wrong last-dropped: it updates 4 times, expected 5: in the last round, too, all ranks update
    for (int first = 0; first + nranks <= nbatches; first += nranks) {
        gradient(buf, count, first + rank, stream);
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: wrong no-update: it updates 4 times, expected 5: in the last round, too, all ranks update
    for (int first = 0; first < nbatches; first += nranks) {
        if (first + rank < nbatches)
            gradient(buf, count, first + rank, stream);
        else
            CHECK_CUDA(cudaMemsetAsync(buf, 0, count * sizeof(float), stream));
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        if (first + rank < nbatches)
            update(buf, count, stream);
    }
    //: wrong one-more: it updates 5 times, expected 4: a round without any batch
    for (int first = 0; first <= nbatches; first += nranks) {
        if (first + rank < nbatches)
            gradient(buf, count, first + rank, stream);
        else
            CHECK_CUDA(cudaMemsetAsync(buf, 0, count * sizeof(float), stream));
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        update(buf, count, stream);
    }
    //: end
}
//: check
#include <math.h>

void gradient(float *buf, size_t count, int batch, cudaStream_t stream);
void update(const float *sum, size_t count, cudaStream_t stream);
void epoch(float *buf, size_t count, int nbatches, int rank, int nranks, ncclComm_t comm,
           cudaStream_t stream);

enum { COUNT = 33 };
static int updates, batches;

void gradient(float *buf, size_t count, int batch, cudaStream_t stream) {
    float host[COUNT];
    for (size_t i = 0; i < count; i++)
        host[i] = (float)check_data(batch, i);
    CHECK_CUDA(cudaMemcpyAsync(buf, host, count * sizeof(float), cudaMemcpyHostToDevice,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}

void update(const float *sum, size_t count, cudaStream_t stream) {
    static float before[COUNT];
    float host[COUNT], expected[COUNT] = {0}, again[COUNT] = {0};
    int idle = 0;
    if (updates == 0)
        memset(before, 0, sizeof before);
    CHECK_CUDA(cudaMemcpyAsync(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < check_nranks; r++) {
        const int batch = updates * check_nranks + r;
        float *to = batch < batches ? expected : again;
        for (size_t i = 0; i < count; i++)
            to[i] += (float)check_data(batch % batches, i);
        idle += batch >= batches;
    }
    for (size_t i = 0; i < count; i++) {
        const float mean = expected[i] / (float)check_nranks;
        const char *why =
            fabsf(host[i] - mean) <= 1e-5f * fabsf(mean)
                ? "\n  ncclAvg divides by all ranks, also by those without a batch. The "
                  "task asks for the sum."
            : host[i] == expected[i] + (float)idle * before[i]
                ? "\n  Ranks without a batch add what `buf` held before."
            : host[i] == expected[i] + again[i]
                ? "\n  Ranks without a batch add one a second time."
                : "";
        check_that(host[i] == expected[i],
                   "element %zu of the sum in update %d is %g, expected %g%s", i, updates,
                   host[i], expected[i], why);
    }
    memcpy(before, expected, sizeof before);
    updates++;
}

void check(void) {
    const int numbers[] = {12, 13, 1, 11};
    for (int n = 0; n < 4; n++) {
        batches = numbers[n];
        updates = 0;
        check_case("%d batches", batches);
        float *buf = check_device(COUNT * sizeof *buf), zeros[COUNT] = {0};
        check_put(buf, zeros, sizeof zeros);
        epoch(buf, COUNT, batches, check_rank, check_nranks, check_comm, check_stream);
        const int rounds = (batches + check_nranks - 1) / check_nranks;
        check_that(updates == rounds, "it updates %d times, expected %d: %s", updates,
                   rounds,
                   updates > rounds ? "a round without any batch is one too many"
                                    : "in the last round, too, all ranks update");
    }
}
