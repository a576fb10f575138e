//: kind fast
//: title Layer by layer
//: trains what each call and each wait costs
//: clock h200
//: ranks 4 2 | 3 7 8
//: starter it takes …, and one broadcast of as many bytes … at most 1.2 is asked
//: learned A small broadcast costs nearly as much as a large one, so send in one call what lies side by side.
//: why The layers follow one another in memory, so one call with the sum of their sizes sends them all.
//: hint How many times does the program wait, and how many broadcasts does it make?
//: hint Without the waits it is faster, and not fast enough: each call has its own latency.
//: hint first[i + 1] is where layer i ends. Where does the last one end?
//: file

/*
 * This function brings the weights of all layers from rank 0 to the others. Layer i has
 * the elements first[i] to first[i + 1] - 1 of `weights`, which is in the GPU's memory.
 *
 * Make it fast: it should take at most 1.2 times as long as one broadcast of as many
 * bytes. The weights must be there when it returns.
 */
#include "lesson.h"

void share_model(float *weights, const size_t *first, int nlayers, ncclComm_t comm,
                 cudaStream_t stream) {
    //: starter
    for (int i = 0; i < nlayers; i++) {
        float *layer = weights + first[i];
        const size_t count = first[i + 1] - first[i];
        CHECK_NCCL(ncclBroadcast(layer, layer, count, ncclFloat32, 0, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: solution
    CHECK_NCCL(
        ncclBroadcast(weights, weights, first[nlayers], ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong one-wait: takes …, and one broadcast of as many bytes
    for (int i = 0; i < nlayers; i++) {
        float *layer = weights + first[i];
        const size_t count = first[i + 1] - first[i];
        CHECK_NCCL(ncclBroadcast(layer, layer, count, ncclFloat32, 0, comm, stream));
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong all-but-last: of the weights is
    CHECK_NCCL(ncclBroadcast(weights, weights, first[nlayers - 1], ncclFloat32, 0, comm,
                             stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong as-bytes: NCCL CHECK: memory
    CHECK_NCCL(ncclBroadcast(weights, weights, first[nlayers] * sizeof(float),
                             ncclFloat32, 0, comm, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    //: wrong no-wait: it returned before the weights were there
    CHECK_NCCL(
        ncclBroadcast(weights, weights, first[nlayers], ncclFloat32, 0, comm, stream));
    //: end
}
//: check
void share_model(float *weights, const size_t *first, int nlayers, ncclComm_t comm,
                 cudaStream_t stream);

enum { LAYERS = 24 };

void check(void) {
    size_t first[LAYERS + 1] = {0};
    for (int i = 0; i < LAYERS; i++)
        first[i + 1] = first[i] + 1000 + 17 * (size_t)i;
    const size_t count = first[LAYERS], bytes = count * sizeof(float);
    check_case("%d layers, %zu elements", LAYERS, count);
    float *weights = check_device(bytes), *other = check_device(bytes);
    float *mine = check_host(bytes), *expected = check_host(bytes);
    for (size_t i = 0; i < count; i++) {
        mine[i] = check_rank == 0 ? (float)check_data(0, i) : 0;
        expected[i] = (float)check_data(0, i);
    }
    check_put(weights, mine, bytes);
    check_put(other, mine, bytes);
    double whole = 0, yours = 0;
    while (check_measuring(&whole))
        CHECK_NCCL(
            ncclBroadcast(other, other, count, ncclFloat32, 0, check_comm, check_stream));
    while (check_measuring(&yours)) {
        share_model(weights, first, LAYERS, check_comm, check_stream);
        check_that(cudaStreamQuery(check_stream) == cudaSuccess,
                   "it returned before the weights were there");
    }
    check_buffer("the weights", weights, expected, count, ncclFloat32);
    check_time(yours, check_modelled() ? 1.2 : 2, whole,
               "one broadcast of as many bytes");
}
