//: kind build
//: title Only if it is needed
//: instead rank 0 => rank 1 ; ncclInt32, 0, comm => ncclInt32, 1, comm ; ncclFloat32, 0, comm => ncclFloat32, 1, comm ; check_rank == 0 => check_rank == 1 ; (float)check_data(0, i) => (float)check_data(1, i) + 100.0f
//: trains a step whose communication depends on a condition
//: ranks 2 3 | 1 4 7 8
//: calls ncclBroadcast
//: starter have not got what rank 0 has
//: learned A condition that only one rank knows is broadcast first; then all ranks take the same way.
//: why All ranks learn rank 0's flag, and only then do they decide, all alike, whether to make the second call.
//: hint Which ranks know whether the weights have changed? What happens if each asks its own flag?
//: hint Two broadcasts: one of the flag, always; one of the weights, if the flag says so. Between them
//:   the host needs the flag.
//: hint Copy the flag to `scratch`, broadcast it, copy it back, wait for the stream. Then `if (changed)`.
//: file

/*
 * Now and then rank 0 loads new weights from a file. Only rank 0 knows: on the other
 * ranks `changed` means nothing. If rank 0's flag is set, bring its weights to all ranks.
 * If not, leave the weights of all ranks alone, and don't send them: they are many.
 *
 * `scratch` is one int in the GPU's memory, for you to use. After the call all work may
 * still be queued on `stream`.
 */
#include "lesson.h"

void refresh(float *weights, size_t count, int changed, int *scratch, ncclComm_t comm,
             cudaStream_t stream) {
    //: starter
    // Yours: about six lines.
    //: solution
    CHECK_CUDA(cudaMemcpyAsync(scratch, &changed, sizeof changed, cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclBroadcast(scratch, scratch, 1, ncclInt32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpyAsync(&changed, scratch, sizeof changed, cudaMemcpyDeviceToHost,
                               stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (changed)
        CHECK_NCCL(ncclBroadcast(weights, weights, count, ncclFloat32, 0, comm, stream));
    //: wrong own-flag: has not begun this operation
    if (changed)
        CHECK_NCCL(ncclBroadcast(weights, weights, count, ncclFloat32, 0, comm, stream));
    //: wrong always: though rank 0 has no new ones
    CHECK_NCCL(ncclBroadcast(weights, weights, count, ncclFloat32, 0, comm, stream));
    //: wrong too-early: NCCL CHECK: race
    CHECK_CUDA(cudaMemcpyAsync(scratch, &changed, sizeof changed, cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclBroadcast(scratch, scratch, 1, ncclInt32, 0, comm, stream));
    CHECK_CUDA(cudaMemcpy(&changed, scratch, sizeof changed, cudaMemcpyDeviceToHost));
    if (changed)
        CHECK_NCCL(ncclBroadcast(weights, weights, count, ncclFloat32, 0, comm, stream));
    //: wrong not-copied-back: has not begun this operation
    CHECK_CUDA(cudaMemcpyAsync(scratch, &changed, sizeof changed, cudaMemcpyHostToDevice,
                               stream));
    CHECK_NCCL(ncclBroadcast(scratch, scratch, 1, ncclInt32, 0, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (changed)
        CHECK_NCCL(ncclBroadcast(weights, weights, count, ncclFloat32, 0, comm, stream));
    //: end
}
//: check
void refresh(float *weights, size_t count, int changed, int *scratch, ncclComm_t comm,
             cudaStream_t stream);

void check(void) {
    const int flags[] = {1, 0, 0, 1, 0};
    const size_t count = 501, bytes = count * sizeof(float);
    for (int step = 0; step < 5; step++) {
        check_case("step %d, which %s new weights", step, flags[step] ? "has" : "has no");
        float *weights = check_device(bytes), *mine = check_host(bytes);
        float *now = check_host(bytes);
        int *scratch = check_device(sizeof *scratch);
        for (size_t i = 0; i < count; i++)
            mine[i] = (float)check_data(check_rank, i) + 100.0f * (float)check_rank;
        check_put(weights, mine, bytes);
        // What the others have as a flag is left over from somewhere else.
        int changed = check_rank == 0 ? flags[step] : (step + check_rank) % 2;
        refresh(weights, count, changed, scratch, check_comm, check_stream);
        check_get(now, weights, bytes);
        bool right = true;
        for (size_t i = 0; i < count; i++)
            right = right && now[i] == (flags[step] ? (float)check_data(0, i) : mine[i]);
        check_that(right,
                   flags[step]
                       ? "the weights have not got what rank 0 has"
                       : "the weights have changed, though rank 0 has no new ones");
    }
}
