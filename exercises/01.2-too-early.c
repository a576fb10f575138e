//: kind repair
//: title It works on my machine
//: instead rank 0 => rank 1 ; ncclFloat32, 0, comm => ncclFloat32, 1, comm ; check_data(0, 0) => check_data(1, 0)
//: trains the wait between a queued operation and the host
//: ranks 2 4 | 1 3 7 8
//: calls ncclBroadcast=1
//: starter NCCL CHECK: race:
//: learned A call only queues work: before the host looks, it must wait for the stream.
//: why The wait stands after the last queued operation and before the first use on the host. A cudaMemcpyAsync queued on
//:   `stream` waits as well if it goes to ordinary host memory, as here. To pinned memory it does not.
//:   The root waits, too: in place, a broadcast may write its buffer as well.
//: hint The report names two lines of your file: one writes, the other reads what it writes.
//: hint A plain cudaMemcpy works in the default stream, which does not wait for a stream that was
//:   made with cudaStreamNonBlocking. What makes the host wait for `stream`?
//: hint cudaStreamSynchronize(stream), between the broadcast and the copy to the host.
//: file

/*
 * A colleague writes: "The new learning rate (how far a training step goes) comes from
 * rank 0. On my machine all ranks get it. On the cluster some go on with the old one,
 * about once in a hundred steps."
 *
 * Repair it. Every step still makes one broadcast.
 */
#include "lesson.h"

/* Gives every rank the rate of rank 0. `buf` is one float in the GPU's memory. */
float agree_on_rate(float rate, float *buf, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    //: solution
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    //: right copy-on-stream
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost, stream));
    //: wrong wait-first: NCCL CHECK: race:
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    //: wrong wait-late: NCCL CHECK: race:
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong barrier: NCCL CHECK: race:
    CHECK_CUDA(cudaMemcpyAsync(buf, &rate, sizeof rate, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, 1, ncclFloat32, 0, comm, stream));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_CUDA(cudaMemcpy(&rate, buf, sizeof rate, cudaMemcpyDeviceToHost));
    //: end
    return rate;
}
//: check
float agree_on_rate(float rate, float *buf, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    for (int step = 0; step < 5; step++) {
        check_case("step %d", step);
        const float expected = (float)check_data(0, 0) / 8;
        float *buf = check_device(sizeof *buf);
        float got = agree_on_rate((float)check_data(check_rank, 0) / 8, buf, check_comm,
                                  check_stream);
        check_that(got == expected, "the rate is %g, expected %g", got, expected);
    }
}
