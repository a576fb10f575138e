// A helper receives into its own array, and returns before anything has come. What comes
// is written into whatever lies on the stack then.
//
// expect: NCCL CHECK: memory: the buffer of MPI_Irecv is a variable of a function that
//     has returned
//
// expect: rank @any on @host: MPI_Irecv at @post
// expect: then comes MPI_Send at @send
#include "../check.h"

enum { COUNT = 64 };

#ifdef FIXED
static int lasting[COUNT];
#endif

static __attribute__((noinline)) void post(MPI_Request *request) {
    int local[COUNT], *into = local;
#ifdef FIXED
    into = lasting;
#endif
    int from = (rank + nranks - 1) % nranks;
    MPI_Irecv(into, COUNT, MPI_INT, from, 0, MPI_COMM_WORLD, request); // @post
}

/* What is on the stack is there: an array of the caller's. */
static __attribute__((noinline)) void wait_for(MPI_Request *request) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(void) {
    start();
    int numbers[COUNT], mine[COUNT] = {rank};
    MPI_Request request;
    MPI_Irecv(numbers, COUNT, MPI_INT, (rank + nranks - 1) % nranks, 0, MPI_COMM_WORLD,
              &request);
    MPI_Send(mine, COUNT, MPI_INT, (rank + 1) % nranks, 0, MPI_COMM_WORLD);
    wait_for(&request);
    EXPECT(numbers[0], (rank + nranks - 1) % nranks);
    post(&request);
    MPI_Send(mine, COUNT, MPI_INT, (rank + 1) % nranks, 0, MPI_COMM_WORLD); // @send
    wait_for(&request);
    use_comm(comm);
    finish();
    return 0;
}
