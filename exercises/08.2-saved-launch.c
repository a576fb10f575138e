//: kind repair
//: title A launch saved, a sum lost
//: trains which calls may be in one group
//: ranks 2 3 | 4 7 8
//: calls ncclReduce ncclBroadcast ncclAllReduce
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK: race: two calls of one group
//: wrong other-order s/CHECK_NCCL\(ncclGroupEnd\(\)\);\s*(CHECK_NCCL\(ncclBroadcast[^;]*;)/$1\nCHECK_NCCL(ncclGroupEnd());/: NCCL CHECK: race
//: wrong wait-inside s/CHECK_NCCL\(ncclGroupEnd\(\)\);/CHECK_CUDA(cudaStreamSynchronize(stream));/: NCCL CHECK:
//: wrong reduce-last s/(CHECK_NCCL\(\s*ncclReduce\([^;]*;)(.*)\}/$2$1}/s: of sum is
//: learned A group is for calls that don't depend on each other; calls that do follow one another in a stream.
//: why The reduce and the all-reduce of the loss are independent; the broadcast comes after the group, in the same stream.
//: hint In which order do the calls of one group happen?
//: hint The broadcast sends what is in `sum` on rank 0. Which call writes that?
//: hint Call ncclGroupEnd before ncclBroadcast.
//: file

/*
 * This function should give every rank the sum of the gradients (by way of rank 0, which
 * logs it) and the sum of the losses. Somebody put all three calls into one group,
 * to save two launches. Since then the sum has sometimes been that of the last step,
 * but never on rank 0.
 *
 * Repair it. Save the launch that can be saved, if you like. Don't wait on the host.
 */
#include "lesson.h"

void sum_up(const float *gradients, float *sum, size_t count, float *loss,
            ncclComm_t comm, cudaStream_t stream) {
    //: starter
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclReduce(gradients, sum, count, ncclFloat32, ncclSum, 0, comm, stream));
    CHECK_NCCL(ncclBroadcast(sum, sum, count, ncclFloat32, 0, comm, stream));
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: solution
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclReduce(gradients, sum, count, ncclFloat32, ncclSum, 0, comm, stream));
    CHECK_NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclBroadcast(sum, sum, count, ncclFloat32, 0, comm, stream));
    //: end
}
//: check
void sum_up(const float *gradients, float *sum, size_t count, float *loss,
            ncclComm_t comm, cudaStream_t stream);

void check(void) {
    const size_t counts[] = {7, 1, 1000};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu gradients", count);
        float *gradients = check_device(bytes), *sum = check_device(bytes);
        float *loss = check_device(sizeof *loss), all = 0;
        float *mine = check_host(bytes), *expected = check_host(bytes);
        memset(expected, 0, bytes);
        check_put(sum, expected, bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        for (int r = 0; r < check_nranks; r++)
            all += (float)check_data(r, count);
        const float own = (float)check_data(check_rank, count);
        check_put(gradients, mine, bytes);
        check_put(loss, &own, sizeof own);
        sum_up(gradients, sum, count, loss, check_comm, check_stream);
        check_buffer("sum", sum, expected, count, ncclFloat32);
        check_buffer("loss", loss, &all, 1, ncclFloat32);
    }
}
