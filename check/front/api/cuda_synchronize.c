/*
 * cuda_synchronize.c: the host waits for a stream, or asks whether it is done.
 *
 * Apart from CUDA's other functions, as those of NCCL that wait for their streams do the
 * same.
 */
#include "answer.h"
#include "timeline.h"

static cudaError_t stream_synchronize(cudaStream_t stream, struct judge_at at) {
    int number;
    at.site = python_site(at.site);
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_wait_stream(j, number, at);
    front_out();
    struct timeline_wait wait = {
        .at = at, .on_stream = true, .stream = stream, .device = -1, .world = -1};
    cudaError_t error = HOST_WAITS(&wait, CALL(BELOW(cudaStreamSynchronize), stream));
    return wait_over(error, true, at);
}
ON_STREAM(cudaStreamSynchronize, stream_synchronize, (cudaStream_t stream), stream)

void stream_waited_for(cudaStream_t stream, struct judge_at at) {
    stream_synchronize(stream, at);
}

static cudaError_t stream_query(cudaStream_t stream, struct judge_at at) {
    int number;
    cudaError_t error = CALL(BELOW(cudaStreamQuery), stream);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return answer(error, at);
    struct judge *j = front_in_stream(stream, -1, &number);
    judge_poll_stream(j, number, error == cudaSuccess, at);
    front_out();
    return error;
}
ON_STREAM(cudaStreamQuery, stream_query, (cudaStream_t stream), stream)
