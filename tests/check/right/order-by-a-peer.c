// Rank 0 puts no event between its two streams, and need not: what the first one sends,
// the last rank has to receive before it answers, and the second stream goes on only
// when the answer is there. A round for each way of answering: by NCCL on another
// communicator, and by a message of MPI, when the last rank has waited.
#include "../check.h"

enum { COUNT = 1000, ROUNDS = 3 };

int main(void) {
    start();
    int last = nranks - 1, *token = device_ints(1, 0), *answer = device_ints(1, 0),
        *values = device_ints(COUNT, 0), *pinned;
    ncclComm_t back = new_comm(MPI_COMM_WORLD);
    cudaStream_t other = new_stream();
    MUST(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned));
    for (int round = 1; round <= ROUNDS && last > 0; round++) {
        if (rank == 0) {
            MUST(cudaMemsetAsync(values, round, COUNT * sizeof *values, stream));
            MUST(ncclSend(token, 1, ncclInt32, last, comm, stream));
            MUST(ncclRecv(answer, 1, ncclInt32, last, back, other));
            MUST(cudaMemcpyAsync(pinned, values, COUNT * sizeof *pinned,
                                 cudaMemcpyDeviceToHost, other));
            MUST(cudaStreamSynchronize(other));
            for (int i = 0; i < COUNT; i++)
                EXPECT(pinned[i], 0x01010101 * round);
        } else if (rank == last) {
            MUST(ncclRecv(token, 1, ncclInt32, 0, comm, stream));
            MUST(ncclSend(token, 1, ncclInt32, 0, back, stream));
        }
    }
    for (int round = 1; round <= ROUNDS && last > 0; round++) {
        if (rank == 0) {
            for (int i = 0; i < COUNT; i++)
                pinned[i] = round * i;
            MUST(cudaMemcpyAsync(values, pinned, COUNT * sizeof *pinned,
                                 cudaMemcpyHostToDevice, stream));
            MUST(ncclSend(values, COUNT, ncclInt32, last, comm, stream));
            MPI_Recv(NULL, 0, MPI_INT, last, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == last) {
            MUST(ncclRecv(values, COUNT, ncclInt32, 0, comm, stream));
            MUST(cudaMemcpyAsync(pinned, values, COUNT * sizeof *pinned,
                                 cudaMemcpyDeviceToHost, stream));
            MUST(cudaStreamSynchronize(stream));
            for (int i = 0; i < COUNT; i++)
                EXPECT(pinned[i], round * i);
            MPI_Send(NULL, 0, MPI_INT, 0, round, MPI_COMM_WORLD);
        }
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(other));
    MUST(ncclCommDestroy(back));
    MUST(cudaStreamDestroy(other));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(token));
    MUST(cudaFree(answer));
    MUST(cudaFree(values));
    finish();
    return 0;
}
