// The edges of a field are packed on one stream and sent on another: a copy of a column
// takes a number out of each of its many rows.
//
// rank: all
// alone: exit code 0
// expect: NCCL CHECK: race: two streams use one buffer with no event between
// expect: cudaMemset2DAsync at @clear writes what
#include "../check.h"

enum { ROWS = 300, COLUMNS = 50, PITCH = COLUMNS * sizeof(int) };

int main(void) {
    start();
    cudaStream_t copies = new_stream();
    cudaEvent_t packed;
    int *field = device_ints(ROWS * COLUMNS, rank), *edge = device_ints(ROWS, -1),
        *got = device_ints(ROWS, -1), from = (rank + nranks - 1) % nranks;
    int *column = field + COLUMNS - 1;
    MUST(cudaEventCreate(&packed));
    MUST(cudaMemcpy2DAsync(edge, sizeof(int), column, PITCH, sizeof(int), ROWS,
                           cudaMemcpyDeviceToDevice, copies));
    MUST(cudaEventRecord(packed, copies));
    MUST(cudaStreamWaitEvent(stream, packed, 0));
#ifdef FIXED
    cudaStream_t cleared_on = copies;
#else
    cudaStream_t cleared_on = new_stream();
#endif
    // @clear
    MUST(cudaMemset2DAsync(column, PITCH, 0, sizeof(int), ROWS, cleared_on));
    MUST(ncclGroupStart());
    MUST(ncclSend(edge, ROWS, ncclInt32, (rank + 1) % nranks, comm, stream));
    MUST(ncclRecv(got, ROWS, ncclInt32, from, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(copies));
    EXPECT_INTS(got, ROWS, from);
    MUST(cudaFree(field));
    MUST(cudaFree(edge));
    MUST(cudaFree(got));
    MUST(cudaEventDestroy(packed));
    MUST(cudaStreamDestroy(copies));
    finish();
    return 0;
}
