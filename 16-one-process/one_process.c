/*
 * One process, all GPUs: ncclCommInitAll, and one group for the calls of all devices.
 *
 *     ./one_process [-n COUNT] [--threads] [--rounds N] [-h]
 */
#include "lesson.h"

#include <pthread.h>

/* One GPU of this process, and what belongs to it. Its NCCL rank is its device number. */
struct gpu {
    int device;
    ncclComm_t comm;
    cudaStream_t stream;
    float *sendbuf, *recvbuf; // on this GPU, count elements each
    size_t count;
    size_t rounds; // all-reduces that its thread makes
};

static void all_reduce(const struct gpu *gpu) {
    CHECK_NCCL(ncclAllReduce(gpu->sendbuf, gpu->recvbuf, gpu->count, ncclFloat32, ncclSum,
                             gpu->comm, gpu->stream));
}

/* One thread makes the calls of all GPUs. Without the group it would wait in the first
 * call until all ranks have made theirs, and so never make the second one. */
static void all_reduce_in_a_group(struct gpu *gpus, int ngpus, size_t rounds) {
    for (size_t i = 0; i < rounds; i++) {
        CHECK_NCCL(ncclGroupStart());
        for (int d = 0; d < ngpus; d++)
            all_reduce(&gpus[d]);
        CHECK_NCCL(ncclGroupEnd());
    }
}

/* What the thread of one GPU does. It needs no group: the calls for the other GPUs come
 * from other threads. */
static void *drive_one_gpu(void *argument) {
    const struct gpu *gpu = argument;
    // The current device belongs to a thread, and in a new thread it is device 0.
    CHECK_CUDA(cudaSetDevice(gpu->device));
    for (size_t i = 0; i < gpu->rounds; i++)
        all_reduce(gpu);
    return NULL;
}

static void all_reduce_by_threads(struct gpu *gpus, int ngpus, size_t rounds) {
    pthread_t threads[ngpus];
    for (int d = 0; d < ngpus; d++) {
        gpus[d].rounds = rounds;
        if (pthread_create(&threads[d], NULL, drive_one_gpu, &gpus[d]) != 0)
            lesson_fail("cannot start a thread for GPU %d", d);
    }
    for (int d = 0; d < ngpus; d++)
        pthread_join(threads[d], NULL);
}

static void wait_for_all(const struct gpu *gpus, int ngpus) {
    for (int d = 0; d < ngpus; d++)
        CHECK_CUDA(cudaStreamSynchronize(gpus[d].stream));
}

/* µs from one all-reduce to the next, on GPU 0, of many queued without a wait. */
static double time_of(void (*way)(struct gpu *, int, size_t), struct gpu *gpus, int ngpus,
                      size_t rounds) {
    cudaEvent_t begin, end;
    float ms;
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_CUDA(cudaEventCreate(&begin));
    CHECK_CUDA(cudaEventCreate(&end));
    CHECK_CUDA(cudaEventRecord(begin, gpus[0].stream));
    way(gpus, ngpus, rounds);
    CHECK_CUDA(cudaEventRecord(end, gpus[0].stream));
    wait_for_all(gpus, ngpus);
    CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
    CHECK_CUDA(cudaEventDestroy(end));
    CHECK_CUDA(cudaEventDestroy(begin));
    return (double)ms * 1e3 / (double)rounds;
}

static void time_both(struct gpu *gpus, int ngpus, size_t rounds) {
    lesson_say_whose_times();
    printf("one thread, one group  %9.2f us an all-reduce\n"
           "one thread per GPU     %9.2f us an all-reduce\n\n",
           time_of(all_reduce_in_a_group, gpus, ngpus, rounds),
           time_of(all_reduce_by_threads, gpus, ngpus, rounds));
}

int main(int argc, char **argv) {
    bool threads = false;
    size_t count = 0, rounds = 0;
    const struct lesson_option options[] = {
        {"-n", "COUNT", "elements on each GPU", .number = &count, .usual = 4, .least = 1},
        {"--threads", NULL, "one thread per GPU instead of one for all",
         .flag = &threads},
        {"--rounds", "N", "all-reduces to time each way; 0: none", .number = &rounds},
        {0}};
    lesson_options(argc, argv, options);
    const size_t bytes = count * sizeof(float);

    // All GPUs that the process can see are its own. There is no MPI: nobody else is
    // there.
    int ngpus;
    CHECK_CUDA(cudaGetDeviceCount(&ngpus));
    lesson_alone.nranks = ngpus;

    // One call makes the communicators of all devices, and no unique id has to travel.
    ncclComm_t comms[ngpus];
    CHECK_NCCL(ncclCommInitAll(comms, ngpus, NULL));

    // Each GPU needs a stream and two buffers. They are made on the current device.
    struct gpu gpus[ngpus];
    float *host = lesson_malloc((size_t)ngpus * bytes);
    for (int d = 0; d < ngpus; d++) {
        struct gpu *gpu = &gpus[d];
        float *part = host + (size_t)d * count;
        *gpu = (struct gpu){.device = d, .comm = comms[d], .count = count};
        CHECK_CUDA(cudaSetDevice(d));
        lesson_need_memory(2 * bytes);
        CHECK_CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaMalloc((void **)&gpu->sendbuf, bytes));
        CHECK_CUDA(cudaMalloc((void **)&gpu->recvbuf, bytes));
        for (size_t i = 0; i < count; i++)
            part[i] = (float)(d + 1);
        CHECK_CUDA(cudaMemcpyAsync(gpu->sendbuf, part, bytes, cudaMemcpyHostToDevice,
                                   gpu->stream));
    }
    lesson_draw_all("Before all-reduce:", host, count, ncclFloat32, ngpus);

    if (threads)
        all_reduce_by_threads(gpus, ngpus, 1);
    else
        all_reduce_in_a_group(gpus, ngpus, 1);

    // The calls only queued the work, on every GPU: so every stream is waited for.
    wait_for_all(gpus, ngpus);
    for (int d = 0; d < ngpus; d++)
        CHECK_CUDA(cudaMemcpy(host + (size_t)d * count, gpus[d].recvbuf, bytes,
                              cudaMemcpyDeviceToHost));
    lesson_draw_all("After all-reduce:", host, count, ncclFloat32, ngpus);
    if (rounds > 0)
        time_both(gpus, ngpus, rounds);
    for (int d = 0; d < ngpus; d++) {
        lesson_alone.rank = d;
        for (size_t i = 0; i < count; i++)
            lesson_expect(i, (double)host[(size_t)d * count + i],
                          ngpus * (ngpus + 1) / 2.0);
    }
    lesson_alone.rank = 0;
    const int exit_code = lesson_verdict("element");

    // In reverse order. The communicators of one process are destroyed in one group, too.
    free(host);
    CHECK_NCCL(ncclGroupStart());
    for (int d = 0; d < ngpus; d++)
        CHECK_NCCL(ncclCommDestroy(gpus[d].comm));
    CHECK_NCCL(ncclGroupEnd());
    for (int d = 0; d < ngpus; d++) {
        CHECK_CUDA(cudaSetDevice(d));
        CHECK_CUDA(cudaFree(gpus[d].recvbuf));
        CHECK_CUDA(cudaFree(gpus[d].sendbuf));
        CHECK_CUDA(cudaStreamDestroy(gpus[d].stream));
    }
    return exit_code;
}
