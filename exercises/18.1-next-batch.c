//: kind complete
//: title The next batch, meanwhile
//: trains double buffering: which stream waits for what
//: clock h200
//: ranks 2 4 | 1 3 7 8
//: starter batch 0 is 0 at its first element, expected
//: wrong one-stream s/HostToDevice, copying/HostToDevice, summing/: it takes … µs, and the copies and then the sums
//: wrong one-after-another s/summed.i % 2., 0/summed[(i + 1) % 2], 0/: it takes … µs, and the copies and then the sums
//: learned Two buffers, two streams, two waits: the sum waits for its copy, the copy for the last sum in its buffer.
//: why The copy into a buffer waits for the sum that used it last, and each sum waits for its copy: nothing else holds anything up.
//: hint What must be over before batch i may be copied into buffer i % 2? What before it is summed?
//: hint An event that was never recorded holds nobody up, so the first two batches need no special case.
//: hint In the loop: wait(copying, summed[b]), copy, record(copied, copying), wait(summing, copied), all-reduce, record(summed[b], summing).
//: file

/*
 * `nbatches` batches of `count` floats lie one after the other in host memory.
 * Copy each into one of two device buffers, in turn, and sum it over all ranks there, in
 * place. Then call use(i, buffer, stream) for batch i; it queues its work on `summing`. A
 * copy should run while the other buffer is summed: use both streams. When the function
 * returns, all work is queued.
 */
#include "lesson.h"

void use(int batch, const float *buffer, cudaStream_t stream);

void sum_batches(const float *batches, int nbatches, size_t count,
                 float *const buffers[2], cudaStream_t copying, cudaStream_t summing,
                 ncclComm_t comm) {
    cudaEvent_t copied, summed[2];
    CHECK_CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaEventCreateWithFlags(&summed[b], cudaEventDisableTiming));
    for (int i = 0; i < nbatches; i++) {
        float *buffer = buffers[i % 2];
        const float *batch = batches + (size_t)i * count;
        const size_t bytes = count * sizeof(float);
        //: starter
        // Your calls.
        (void)batch, (void)bytes, (void)copying, (void)comm, (void)copied;
        use(i, buffer, summing);
        //: solution
        CHECK_CUDA(cudaStreamWaitEvent(copying, summed[i % 2], 0));
        CHECK_CUDA(
            cudaMemcpyAsync(buffer, batch, bytes, cudaMemcpyHostToDevice, copying));
        CHECK_CUDA(cudaEventRecord(copied, copying));
        CHECK_CUDA(cudaStreamWaitEvent(summing, copied, 0));
        CHECK_NCCL(
            ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, summing));
        use(i, buffer, summing);
        CHECK_CUDA(cudaEventRecord(summed[i % 2], summing));
        //: wrong no-second-wait: NCCL CHECK: race
        CHECK_CUDA(
            cudaMemcpyAsync(buffer, batch, bytes, cudaMemcpyHostToDevice, copying));
        CHECK_CUDA(cudaEventRecord(copied, copying));
        CHECK_CUDA(cudaStreamWaitEvent(summing, copied, 0));
        CHECK_NCCL(
            ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, summing));
        use(i, buffer, summing);
        //: wrong no-first-wait: NCCL CHECK: race
        CHECK_CUDA(cudaStreamWaitEvent(copying, summed[i % 2], 0));
        CHECK_CUDA(
            cudaMemcpyAsync(buffer, batch, bytes, cudaMemcpyHostToDevice, copying));
        CHECK_NCCL(
            ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, summing));
        use(i, buffer, summing);
        CHECK_CUDA(cudaEventRecord(summed[i % 2], summing));
        //: wrong recorded-too-early: NCCL CHECK: race
        CHECK_CUDA(cudaStreamWaitEvent(copying, summed[i % 2], 0));
        CHECK_CUDA(
            cudaMemcpyAsync(buffer, batch, bytes, cudaMemcpyHostToDevice, copying));
        CHECK_CUDA(cudaEventRecord(copied, copying));
        CHECK_CUDA(cudaStreamWaitEvent(summing, copied, 0));
        CHECK_CUDA(cudaEventRecord(summed[i % 2], summing));
        CHECK_NCCL(
            ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, summing));
        use(i, buffer, summing);
        //: right host-waits
        CHECK_CUDA(cudaStreamWaitEvent(copying, summed[i % 2], 0));
        CHECK_CUDA(
            cudaMemcpyAsync(buffer, batch, bytes, cudaMemcpyHostToDevice, copying));
        CHECK_CUDA(cudaStreamSynchronize(copying));
        CHECK_NCCL(
            ncclAllReduce(buffer, buffer, count, ncclFloat32, ncclSum, comm, summing));
        use(i, buffer, summing);
        CHECK_CUDA(cudaEventRecord(summed[i % 2], summing));
        //: end
    }
    CHECK_CUDA(cudaEventDestroy(copied));
    for (int b = 0; b < 2; b++)
        CHECK_CUDA(cudaEventDestroy(summed[b]));
}
//: check
void sum_batches(const float *batches, int nbatches, size_t count,
                 float *const buffers[2], cudaStream_t copying, cudaStream_t summing,
                 ncclComm_t comm);

enum { BATCHES = 5, COUNT = 400000 };
static float *results; // on the device

void use(int batch, const float *buffer, cudaStream_t stream) {
    CHECK_CUDA(cudaMemcpyAsync(results + batch * COUNT, buffer, COUNT * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream));
}

/* Whether copies run beside sums. With one rank a sum is too short to say. */
static void check_overlap(const float *batches, float *const buffers[2],
                          cudaStream_t copying) {
    double copies = 0, sums = 0, both = 0;
    while (check_measuring(&copies))
        for (int i = 0; i < BATCHES; i++)
            CHECK_CUDA(cudaMemcpyAsync(buffers[i % 2], batches + i * COUNT,
                                       COUNT * sizeof(float), cudaMemcpyHostToDevice,
                                       copying));
    while (check_measuring(&sums))
        for (int i = 0; i < BATCHES; i++) {
            CHECK_NCCL(ncclAllReduce(buffers[i % 2], buffers[i % 2], COUNT, ncclFloat32,
                                     ncclSum, check_comm, check_stream));
            use(i, buffers[i % 2], check_stream);
        }
    while (check_measuring(&both))
        sum_batches(batches, BATCHES, COUNT, buffers, copying, check_stream, check_comm);
    check_time(both, 0.9, copies + sums, "the copies and then the sums");
}

void check(void) {
    float *pinned, *expected = malloc(BATCHES * COUNT * sizeof(float));
    const size_t bytes = COUNT * sizeof(float);
    cudaStream_t copying;
    CHECK_CUDA(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
    check_case("%d batches of %d elements", BATCHES, COUNT);
    pinned = check_host(BATCHES * bytes);
    for (size_t i = 0; i < BATCHES * COUNT; i++) {
        pinned[i] = (float)check_data(check_rank, i);
        expected[i] = 0;
        for (int r = 0; r < check_nranks; r++)
            expected[i] += (float)check_data(r, i);
    }
    results = check_device(BATCHES * bytes);
    CHECK_CUDA(cudaMemset(results, 0, BATCHES * bytes));
    CHECK_CUDA(cudaDeviceSynchronize());
    float *buffers[2] = {check_device(bytes), check_device(bytes)};
    for (int b = 0; b < 2; b++) {
        CHECK_CUDA(cudaMemset(buffers[b], 0, bytes));
        CHECK_CUDA(cudaDeviceSynchronize());
    }
    sum_batches(pinned, BATCHES, COUNT, buffers, copying, check_stream, check_comm);
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    CHECK_CUDA(cudaStreamSynchronize(copying));
    for (int i = 0; i < BATCHES; i++) {
        char name[32];
        snprintf(name, sizeof name, "batch %d", i);
        float first[1];
        check_get(first, results + i * COUNT, sizeof first);
        check_that(first[0] == expected[i * COUNT],
                   "%s is %g at its first element, expected %g", name, (double)first[0],
                   (double)expected[i * COUNT]);
        check_buffer(name, results + i * COUNT, expected + i * COUNT, COUNT, ncclFloat32);
    }
    if (check_modelled() && check_nranks > 1)
        check_overlap(pinned, buffers, copying);
    CHECK_CUDA(cudaStreamDestroy(copying));
    free(expected);
}
