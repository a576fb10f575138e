//: kind build
//: title A step with momentum
//: trains a kernel of one's own after an all-reduce, without a wait
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=1
//: only ncclAllReduce
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of the velocity is
//: learned A kernel in the stream of an all-reduce uses its sums without a wait: the stream is the order.
//: why The kernel starts when the all-reduce is done, and each thread updates one velocity and one weight.
//: hint Two steps on `stream`: sum the gradient over all ranks, then launch a kernel with a thread for each weight.
//: hint The kernel: i as in the lesson; if (i < count): the new velocity first, then the weight, from it.
//: hint velocity[i] = momentum * velocity[i] + gradient[i] / nranks; weight[i] -= rate * velocity[i]; launched with
//:   (count + 255) / 256 blocks of 256 threads, 0, stream.
//: wrong not-the-mean s/gradient\[i\] \/ nranks/gradient[i]/: of the velocity is
//: wrong default-stream s/256, 0, stream>>>/256>>>/: NCCL CHECK: race
//: wrong old-velocity s/weight\[i\] -= rate \* velocity\[i\]/weight[i] -= rate * gradient[i] \/ nranks/: of the weights is
//: wrong one-block s/\(unsigned\)\(\(count \+ 255\) \/ 256\)/1/: of the velocity is
//: file

/*
 * A step of training with momentum. `gradient` is this rank's; the step takes the mean of
 * all ranks:
 *
 *     velocity = momentum * velocity + mean
 *     weight   = weight - rate * velocity
 *
 * All three buffers have `count` floats in the GPU's memory. Call NCCL once, launch one
 * kernel, and don't wait on the host.
 */
#include "lesson.h"

__global__ void update(float *weight, float *velocity, const float *gradient,
                       size_t count, float rate, float momentum, float nranks) {
    //: starter
    // Your kernel.
    //: solution
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        velocity[i] = momentum * velocity[i] + gradient[i] / nranks;
        weight[i] -= rate * velocity[i];
    }
    //: end
}

extern "C" void train_step(float *weight, float *velocity, float *gradient, size_t count,
                           float rate, float momentum, int nranks, ncclComm_t comm,
                           cudaStream_t stream) {
    //: starter
    // Sum, then launch.
    CHECK_NCCL(ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, stream));
    //: solution
    CHECK_NCCL(ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclSum, comm, stream));
    update<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(weight, velocity, gradient,
                                                              count, rate, momentum,
                                                              (float)nranks);
    CHECK_CUDA(cudaGetLastError());
    //: end
}
//: check
void train_step(float *weight, float *velocity, float *gradient, size_t count, float rate,
                float momentum, int nranks, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {5, 1000};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu weights", count);
        float *all[3], *expected[2];
        for (int k = 0; k < 3; k++)
            all[k] = check_host(bytes);
        for (int k = 0; k < 2; k++)
            expected[k] = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            float sum = 0;
            for (int r = 0; r < check_nranks; r++)
                sum += (float)check_data(r, i);
            all[0][i] = 8;
            all[1][i] = (float)(i % 16);
            all[2][i] = (float)check_data(check_rank, i);
            expected[1][i] = 0.5f * all[1][i] + sum / (float)check_nranks;
            expected[0][i] = all[0][i] - 0.25f * expected[1][i];
        }
        float *device[3];
        for (int k = 0; k < 3; k++) {
            device[k] = check_device(bytes);
            check_put(device[k], all[k], bytes);
        }
        train_step(device[0], device[1], device[2], count, 0.25f, 0.5f, check_nranks,
                   check_comm, check_stream);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
        check_buffer("the velocity", device[1], expected[1], count, ncclFloat32);
        check_buffer("the weights", device[0], expected[0], count, ncclFloat32);
    }
}
