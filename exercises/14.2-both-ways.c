//: kind repair
//: title Both ways at once
//: trains the order of sends and receives between neighbours
//: ranks 2 3 | 4 7 8
//: calls ncclSend ncclRecv<=2
//: starter NCCL CHECK: deadlock
//: learned Two neighbours that send to each other at the same time need an order that suits both, or one group.
//: why On all ranks, first what goes forward, then what goes backward: a rank that sends has a neighbour that receives.
//: hint The report shows a cycle. Two neighbours are in it: what does each of them do first?
//: hint If a rank sends to the next one, that one should be receiving. What is the order for it?
//: hint All ranks: first the activations (send to the next, receive from the previous), then the
//:   gradients the other way. Or all four calls in one group.
//: file

/*
 * "My pipeline worked as long as everything went forward first and backward later. Now a
 * rank sends an output forward and a gradient backward between two pieces of work, and it
 * hangs." Repair it.
 *
 * The first rank has nobody before it, the last nobody after it.
 */
#include "lesson.h"

void exchange(const float *output, float *input, const float *gradient, float *arriving,
              size_t count, int rank, int nranks, ncclComm_t comm, cudaStream_t stream) {
    const int previous = rank - 1, next = rank + 1;
    //: starter
    if (next < nranks)
        CHECK_NCCL(ncclSend(output, count, ncclFloat, next, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclSend(gradient, count, ncclFloat, previous, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclRecv(input, count, ncclFloat, previous, comm, stream));
    if (next < nranks)
        CHECK_NCCL(ncclRecv(arriving, count, ncclFloat, next, comm, stream));
    //: solution
    if (next < nranks)
        CHECK_NCCL(ncclSend(output, count, ncclFloat, next, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclRecv(input, count, ncclFloat, previous, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclSend(gradient, count, ncclFloat, previous, comm, stream));
    if (next < nranks)
        CHECK_NCCL(ncclRecv(arriving, count, ncclFloat, next, comm, stream));
    //: wrong receive-first: NCCL CHECK: deadlock
    if (previous >= 0)
        CHECK_NCCL(ncclRecv(input, count, ncclFloat, previous, comm, stream));
    if (next < nranks)
        CHECK_NCCL(ncclRecv(arriving, count, ncclFloat, next, comm, stream));
    if (next < nranks)
        CHECK_NCCL(ncclSend(output, count, ncclFloat, next, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclSend(gradient, count, ncclFloat, previous, comm, stream));
    //: wrong two-groups: NCCL CHECK: deadlock
    CHECK_NCCL(ncclGroupStart());
    if (next < nranks)
        CHECK_NCCL(ncclSend(output, count, ncclFloat, next, comm, stream));
    if (previous >= 0)
        CHECK_NCCL(ncclSend(gradient, count, ncclFloat, previous, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    if (previous >= 0)
        CHECK_NCCL(ncclRecv(input, count, ncclFloat, previous, comm, stream));
    if (next < nranks)
        CHECK_NCCL(ncclRecv(arriving, count, ncclFloat, next, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong buffers: element 0 of arriving is
    CHECK_NCCL(ncclGroupStart());
    if (next < nranks) {
        CHECK_NCCL(ncclSend(output, count, ncclFloat, next, comm, stream));
        CHECK_NCCL(ncclRecv(input, count, ncclFloat, next, comm, stream));
    }
    if (previous >= 0) {
        CHECK_NCCL(ncclSend(gradient, count, ncclFloat, previous, comm, stream));
        CHECK_NCCL(ncclRecv(arriving, count, ncclFloat, previous, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void exchange(const float *output, float *input, const float *gradient, float *arriving,
              size_t count, int rank, int nranks, ncclComm_t comm, cudaStream_t stream);

/* A buffer of the device with data of a rank; of a rank that does not exist: zeros. */
static float *filled(int rank, size_t shift, size_t count, float *host) {
    float *buffer = check_device(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        host[i] =
            rank >= 0 && rank < check_nranks ? (float)check_data(rank, shift + i) : 0;
    check_put(buffer, host, count * sizeof(float));
    return buffer;
}

void check(void) {
    const size_t counts[] = {3, 1001};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu numbers each way", count);
        float *host = check_host(bytes), *before = check_host(bytes);
        float *after = check_host(bytes);
        float *input = filled(-1, 0, count, host), *arriving = filled(-1, 0, count, host);
        // What the neighbours have: an output from before, a gradient from after.
        filled(check_rank - 1, 0, count, before);
        filled(check_rank + 1, count, count, after);
        const float *output = filled(check_rank, 0, count, host);
        const float *gradient = filled(check_rank, count, count, host);
        exchange(output, input, gradient, arriving, count, check_rank, check_nranks,
                 check_comm, check_stream);
        check_buffer("arriving", arriving, after, count, ncclFloat);
        check_buffer("input", input, before, count, ncclFloat);
    }
}
