// Two communicators with calls that never end are given up, one after the other: that
// whose call is the first on the stream is the first, or each has a stream of its own, or
// another thread gives up the other one meanwhile. And one is given up whose call comes
// after another one's that does end.
#include "../check.h"

#include <pthread.h>

static int *a, *b;
static ncclComm_t one, other;

static void new_comms(void) {
    one = new_comm(MPI_COMM_WORLD);
    other = new_comm(MPI_COMM_WORLD);
    use_comm(one);
    use_comm(other);
}

static void hang(ncclComm_t on, int *buf, cudaStream_t in) {
    if (rank > 0)
        MUST(ncclAllReduce(buf, buf, 4, ncclInt32, ncclSum, on, in));
}

static void *aborts(void *which) {
    usleep(300000); // the other thread waits in its abort
    MUST(ncclCommAbort(*(ncclComm_t *)which));
    return NULL;
}

int main(void) {
    start();
    a = device_ints(4, 0);
    b = device_ints(4, 0);
    cudaStream_t side = new_stream();

    new_comms(); // in their order on the stream
    hang(one, a, stream);
    hang(other, b, stream);
    MUST(ncclCommAbort(one));
    MUST(ncclCommAbort(other));
    MUST(cudaStreamSynchronize(stream));

    new_comms(); // each on its stream
    hang(one, a, stream);
    hang(other, b, side);
    MUST(ncclCommAbort(other));
    MUST(ncclCommAbort(one));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(side));

    new_comms(); // the first one's call ends, if late
    if (rank == 0)
        usleep(300000);
    MUST(ncclAllReduce(a, a, 4, ncclInt32, ncclSum, one, stream));
    hang(other, b, stream);
    MUST(ncclCommAbort(other));
    MUST(cudaStreamSynchronize(stream));
    EXPECT_INTS(a, 4, 0);
    MUST(ncclCommDestroy(one));

    new_comms(); // by two threads at once
    pthread_t thread;
    hang(one, a, stream);
    hang(other, b, stream);
    pthread_create(&thread, NULL, aborts, &one);
    MUST(ncclCommAbort(other));
    pthread_join(thread, NULL);
    MUST(cudaStreamSynchronize(stream));

    MUST(cudaStreamDestroy(side));
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    finish();
    return 0;
}
