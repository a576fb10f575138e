//: kind repair
//: title Told too soon
//: trains who tells the receiver of a direct copy
//: ranks 2 3 | 4 7 8
//: starter from rank
//: learned In a direct copy the receiver makes no call: the sender waits for its copy, and then says so.
//: why The barrier is the message. It may come only when the copy has ended, and again when the data has been read.
//: hint What is sure when a rank has left MPI_Barrier: that all copies have been queued, or that they are done?
//: hint MPI knows nothing of streams. What must the sender do before it goes to the barrier?
//: hint cudaStreamSynchronize(stream), between the copy and the first barrier.
//: file

/*
 * "In every round each rank copies its numbers directly into the next rank's `target`;
 * `far` is the address of that. The barrier says that they are there. Yet now and then a
 * rank reads the numbers of the round before."
 *
 * Repair it. `result` is in the host's memory.
 */
#include "lesson.h"

void pass_on(const float *mine, float *far, const float *target, float *result,
             size_t count, cudaStream_t stream) {
    const size_t bytes = count * sizeof(float);
    //: starter
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaMemcpy(result, target, bytes, cudaMemcpyDeviceToHost));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); // nobody overwrites what is still being read
    //: solution
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaMemcpy(result, target, bytes, cudaMemcpyDeviceToHost));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); // nobody overwrites what is still being read
    //: wrong wait-after-barrier: from rank
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(result, target, bytes, cudaMemcpyDeviceToHost));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    //: wrong two-barriers: from rank
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaMemcpy(result, target, bytes, cudaMemcpyDeviceToHost));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    //: wrong read-in-the-stream: from rank
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaMemcpyAsync(result, target, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    //: wrong no-barrier: round
    CHECK_CUDA(cudaMemcpyAsync(far, mine, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(result, target, bytes, cudaMemcpyDeviceToHost));
    //: end
}
//: check
void pass_on(const float *mine, float *far, const float *target, float *result,
             size_t count, cudaStream_t stream);

enum { ROUNDS = 6 };

/* Holds the stream up, so that what comes after it is late. */
static void CUDART_CB hold(void *unused) {
    (void)unused;
    lesson_pause(0.03);
}

void check(void) {
    const size_t count = 1 << 16, bytes = count * sizeof(float);
    const int next = (check_rank + 1) % check_nranks;
    const int previous = (check_rank + check_nranks - 1) % check_nranks;
    check_case("%d rounds", ROUNDS);
    float *host = check_host(bytes), *result = check_host(bytes), *far;
    float *mine = check_device(bytes), *target = check_device(bytes);
    check_put(target, memset(host, 0, bytes), bytes);
    cudaIpcMemHandle_t own, all[check_nranks];
    CHECK_CUDA(cudaIpcGetMemHandle(&own, target));
    CHECK_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE,
                            MPI_COMM_WORLD));
    CHECK_CUDA(
        cudaIpcOpenMemHandle((void **)&far, all[next], cudaIpcMemLazyEnablePeerAccess));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++)
            host[i] = (float)(check_data(check_rank, i) + 100 * round);
        check_put(mine, host, bytes);
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (round % check_nranks == check_rank) { // one rank is late, and so is its copy
            lesson_pause(0.02);
            CHECK_CUDA(cudaLaunchHostFunc(check_stream, hold, NULL));
        }
        pass_on(mine, far, target, result, count, check_stream);
        for (size_t i = 0; i < count; i++) {
            const int expected = check_data(previous, i) + 100 * round;
            if (!check_that(result[i] == (float)expected,
                            "round %d: element %zu from rank %d is %g, expected %d%s",
                            round, i, previous, result[i], expected,
                            result[i] < (float)(100 * round)
                                ? "\n  It is from before this round."
                                : ""))
                break;
        }
        CHECK_CUDA(cudaDeviceSynchronize());
    }
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaIpcCloseMemHandle(far));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
}
