//: kind repair
//: title Half of them begin elsewhere
//: trains one order over all communicators
//: ranks 4 | 1 2 8
//: calls ncclAllReduce=2
//: starter NCCL CHECK: deadlock
//: learned All ranks call the operations of all their communicators in the same order.
//: why When every rank comes to its row first and to its column second, nobody waits for a rank that is elsewhere.
//: hint Read the cycle in the report. In which communicator does each of its ranks wait?
//: hint A rank whose neighbour in the row begins with the column waits for it, and that one waits for somebody else.
//: hint Leave out the condition.
//: file

/*
 * "To spread the load over the links, half of the ranks begin with their row, and the
 * other half with their column. On two ranks it works, on four it hangs."
 *
 * Each rank is in two communicators, and has two sums to make, which don't depend on each
 * other: x over its row, y over its column. Repair the function. Every sum is needed
 * once.
 */
#include "lesson.h"

void add_both(float *x, float *y, size_t count, int row, int column, ncclComm_t in_row,
              ncclComm_t in_column, cudaStream_t stream) {
    //: starter
    const bool row_first = (row + column) % 2 == 0;
    if (row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_column, stream));
    if (!row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    //: solution
    CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_column, stream));
    //: wrong other-half: NCCL CHECK: deadlock
    const bool row_first = (row + column) % 2 == 1;
    if (row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_column, stream));
    if (!row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    //: wrong wait-between: NCCL CHECK: deadlock
    const bool row_first = (row + column) % 2 == 0;
    if (row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_column, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (!row_first)
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
    //: wrong exchanged: element 0 of x is
    CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_row, stream));
    CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_column, stream));
    //: wrong condition-kept: NCCL CHECK: deadlock
    if ((row + column) % 2 == 0) {
        CHECK_NCCL(ncclAllReduce(x, x, count, ncclFloat, ncclSum, in_row, stream));
        CHECK_NCCL(ncclAllReduce(y, y, count, ncclFloat, ncclSum, in_column, stream));
    }
    //: end
}
//: check
void add_both(float *x, float *y, size_t count, int row, int column, ncclComm_t in_row,
              ncclComm_t in_column, cudaStream_t stream);

void check(void) {
    const int columns = check_nranks >= 4 ? check_nranks / 2 : check_nranks;
    const int row = check_rank / columns, column = check_rank % columns;
    const int rows = check_nranks / columns;
    ncclComm_t in_row, in_column;
    CHECK_NCCL(ncclCommSplit(check_comm, row, column, &in_row, NULL));
    CHECK_NCCL(ncclCommSplit(check_comm, column, row, &in_column, NULL));
    const size_t counts[] = {3, 1000};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c], bytes = count * sizeof(float);
        check_case("%zu numbers, a grid of %d x %d", count, rows, columns);
        float *x = check_device(bytes), *y = check_device(bytes);
        float *host = check_host(bytes);
        float *of_row = check_host(bytes), *of_column = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            of_row[i] = of_column[i] = 0;
            for (int other = 0; other < columns; other++)
                of_row[i] += (float)check_data(row * columns + other, i);
            for (int other = 0; other < rows; other++)
                of_column[i] += (float)check_data(other * columns + column, count + i);
        }
        for (size_t i = 0; i < count; i++)
            host[i] = (float)check_data(check_rank, i);
        check_put(x, host, bytes);
        for (size_t i = 0; i < count; i++)
            host[i] = (float)check_data(check_rank, count + i);
        check_put(y, host, bytes);
        add_both(x, y, count, row, column, in_row, in_column, check_stream);
        check_buffer("x", x, of_row, count, ncclFloat);
        check_buffer("y", y, of_column, count, ncclFloat);
    }
    CHECK_NCCL(ncclCommDestroy(in_column));
    CHECK_NCCL(ncclCommDestroy(in_row));
}
