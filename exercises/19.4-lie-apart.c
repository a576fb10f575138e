//: kind build
//: title Values that lie apart
//: trains packing: copies on the GPU, one call, copies back
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=1
//: only ncclAllReduce
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of value 0 is …, expected
//: learned Small values that lie apart are copied together, summed by one call, and copied back: all of it queued, without a wait.
//: why The copies are in the same stream as the call, so each begins when the one before is done, and one launch sums all values.
//: hint One call takes one buffer. Which one could hold all values, and who brings them there and back?
//: hint cudaMemcpyAsync with cudaMemcpyDeviceToDevice on `stream`: value v goes to packed + v * count. Does anybody
//:   have to wait between the copies and the call?
//: hint A loop of copies into `packed`; ncclAllReduce(packed, packed, nvalues * count, …); a loop of copies back. All on
//:   `stream`.
//: file

/*
 * `nvalues` small values of `count` floats each lie somewhere in the GPU's memory:
 * values[0], values[1], … Sum each of them over all ranks, in place, with a single call
 * of NCCL. `packed` has room for all of them, one after the other. Don't wait on the
 * host.
 */
#include "lesson.h"

void sum_values(float *const *values, size_t nvalues, size_t count, float *packed,
                ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Together, sum, back.
    //: solution
    const size_t bytes = count * sizeof(float);
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(packed + v * count, values[v], bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(packed, packed, nvalues * count, ncclFloat32, ncclSum, comm,
                             stream));
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(values[v], packed + v * count, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    //: wrong not-copied-back: not summed, or not copied back
    const size_t bytes = count * sizeof(float);
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(packed + v * count, values[v], bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(packed, packed, nvalues * count, ncclFloat32, ncclSum, comm,
                             stream));
    //: wrong not-waited-for-copies: NCCL CHECK: race:
    const size_t bytes = count * sizeof(float);
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(packed + v * count, values[v], bytes,
                                   cudaMemcpyDeviceToDevice, 0));
    CHECK_NCCL(ncclAllReduce(packed, packed, nvalues * count, ncclFloat32, ncclSum, comm,
                             stream));
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(values[v], packed + v * count, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    //: wrong bytes-as-place: CUDA says: invalid argument
    const size_t bytes = count * sizeof(float);
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(packed + v * bytes, values[v], bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(packed, packed, nvalues * count, ncclFloat32, ncclSum, comm,
                             stream));
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(values[v], packed + v * bytes, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    //: wrong count-of-one: value 1 is
    const size_t bytes = count * sizeof(float);
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(packed + v * count, values[v], bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    CHECK_NCCL(ncclAllReduce(packed, packed, count, ncclFloat32, ncclSum, comm, stream));
    for (size_t v = 0; v < nvalues; v++)
        CHECK_CUDA(cudaMemcpyAsync(values[v], packed + v * count, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
    //: wrong call-for-each: the task asks for 1
    for (size_t v = 0; v < nvalues; v++)
        CHECK_NCCL(ncclAllReduce(values[v], values[v], count, ncclFloat32, ncclSum, comm,
                                 stream));
    (void)packed;
    //: end
}
//: check
void sum_values(float *const *values, size_t nvalues, size_t count, float *packed,
                ncclComm_t comm, cudaStream_t stream);

void check(void) {
    enum { MOST = 16 };
    const size_t nvalues[] = {3, 1, MOST}, counts[] = {2, 5, 33};
    for (int c = 0; c < 3; c++) {
        const size_t n = nvalues[c], count = counts[c], bytes = count * sizeof(float);
        check_case("%zu values of %zu floats", n, count);
        float *values[MOST], *packed = check_device(n * bytes);
        float *mine = check_host(n * bytes), *expected = check_host(n * bytes);
        for (size_t i = 0; i < n * count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            expected[i] = 0;
            for (int r = 0; r < check_nranks; r++)
                expected[i] += (float)check_data(r, i);
        }
        // In descending order, so that they don't follow one another.
        for (size_t v = n; v-- > 0;) {
            values[v] = check_device(bytes + 64);
            check_put(values[v], mine + v * count, bytes);
        }
        sum_values(values, n, count, packed, check_comm, check_stream);
        CHECK_CUDA(cudaStreamSynchronize(check_stream));
        for (size_t v = 0; v < n && check_nranks > 1; v++) {
            char name[32];
            snprintf(name, sizeof name, "value %zu", v);
            check_mistake("It is as it was: not summed, or not copied back.",
                          mine + v * count);
            check_buffer(name, values[v], expected + v * count, count, ncclFloat32);
        }
    }
}
