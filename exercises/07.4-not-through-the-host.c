//: kind fast
//: title Not through the host
//: trains the direct way between two GPUs
//: clock h200
//: ranks 2 3 | 1 4 7 8
//: starter it takes … times
//: learned Bytes that go through the host cross the slow bus twice; NCCL takes the direct way between the GPUs.
//: why Buffers on the GPUs go to ncclSend and ncclRecv as they are, and NCCL takes NVLink; one group uses it both ways.
//: hint Which ways do the bytes take here, and which of them is the slowest?
//: hint NCCL takes addresses of the GPU's memory. So which of these copies is needed?
//: hint In a group: ncclSend(mine, …, next, comm, stream) and ncclRecv(theirs, …, previous, comm, stream). No MPI, no copy.
//: file

/*
 * Each rank passes a large buffer to the next one, and gets one from the previous one.
 * All of it is in the GPUs' memory, and yet the bytes go through the host. Make it
 * faster: it should take at most a third of the time. All work may still be queued on
 * `stream` when it returns.
 *
 * `host` has room for two buffers, in the host's memory.
 */
#include "lesson.h"

void pass_on(const float *mine, float *theirs, float *host, size_t count, int rank,
             int nranks, ncclComm_t comm, cudaStream_t stream) {
    const int next = (rank + 1) % nranks, previous = (rank + nranks - 1) % nranks;
    //: starter
    const size_t bytes = count * sizeof(float);
    CHECK_CUDA(cudaMemcpyAsync(host, mine, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_MPI(MPI_Sendrecv(host, (int)count, MPI_FLOAT, next, 0, host + count, (int)count,
                           MPI_FLOAT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_CUDA(
        cudaMemcpyAsync(theirs, host + count, bytes, cudaMemcpyHostToDevice, stream));
    //: solution
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong without-wait: it takes … times
    const size_t bytes = count * sizeof(float);
    CHECK_CUDA(cudaMemcpyAsync(host, mine, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_MPI(MPI_Sendrecv(host, (int)count, MPI_FLOAT, next, 0, host + count, (int)count,
                           MPI_FLOAT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_CUDA(
        cudaMemcpyAsync(theirs, host + count, bytes, cudaMemcpyHostToDevice, stream));
    //: wrong in-pieces: it takes … times
    for (size_t first = 0, part; first < count; first += part) {
        part = (count + 3) / 4 < count - first ? (count + 3) / 4 : count - first;
        CHECK_CUDA(cudaMemcpyAsync(host, mine + first, part * sizeof(float),
                                   cudaMemcpyDeviceToHost, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
        CHECK_MPI(MPI_Sendrecv(host, (int)part, MPI_FLOAT, next, 0, host + count,
                               (int)part, MPI_FLOAT, previous, 0, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE));
        CHECK_CUDA(cudaMemcpyAsync(theirs + first, host + count, part * sizeof(float),
                                   cudaMemcpyHostToDevice, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: wrong nccl-from-host: NCCL CHECK: memory: sendbuff of ncclSend
    CHECK_CUDA(cudaMemcpyAsync(host, mine, count * sizeof(float), cudaMemcpyDeviceToHost,
                               stream));
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(host, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: wrong no-group: NCCL CHECK: deadlock
    CHECK_NCCL(ncclSend(mine, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, previous, comm, stream));
    //: wrong wrong-way-round: of theirs is … These are the next rank's
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, count, ncclFloat32, previous, comm, stream));
    CHECK_NCCL(ncclRecv(theirs, count, ncclFloat32, next, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void pass_on(const float *mine, float *theirs, float *host, size_t count, int rank,
             int nranks, ncclComm_t comm, cudaStream_t stream);

static void staged(const float *mine, float *theirs, float *host, size_t count) {
    const int next = (check_rank + 1) % check_nranks;
    const int previous = (check_rank + check_nranks - 1) % check_nranks;
    const size_t bytes = count * sizeof(float);
    CHECK_CUDA(cudaMemcpyAsync(host, mine, bytes, cudaMemcpyDeviceToHost, check_stream));
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
    CHECK_MPI(MPI_Sendrecv(host, (int)count, MPI_FLOAT, next, 0, host + count, (int)count,
                           MPI_FLOAT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_CUDA(cudaMemcpyAsync(theirs, host + count, bytes, cudaMemcpyHostToDevice,
                               check_stream));
}

void check(void) {
    const size_t count = (1 << 20) + 3, bytes = count * sizeof(float);
    const int next = (check_rank + 1) % check_nranks;
    const int previous = (check_rank + check_nranks - 1) % check_nranks;
    check_case("%zu floats", count);
    float *host = check_host(2 * bytes), *expected = check_host(bytes);
    float *others = check_host(bytes);
    float *mine = check_device(bytes), *theirs = check_device(bytes);
    for (size_t i = 0; i < count; i++) {
        host[i] = (float)check_data(check_rank, i);
        expected[i] = (float)check_data(previous, i);
        others[i] = (float)check_data(next, i);
    }
    check_put(mine, host, bytes);
    check_put(theirs, memset(host, 0, bytes), bytes);
    pass_on(mine, theirs, host, count, check_rank, check_nranks, check_comm,
            check_stream);
    if (check_nranks > 2)
        check_mistake("These are the next rank's numbers, not the previous one's.",
                      others);
    check_buffer("theirs", theirs, expected, count, ncclFloat32);
    double slow = 0, yours = 0;
    while (check_measuring(&slow))
        staged(mine, theirs, host, count);
    while (check_measuring(&yours))
        pass_on(mine, theirs, host, count, check_rank, check_nranks, check_comm,
                check_stream);
    check_time(yours, 1.0 / 3, slow, "through the host");
}
