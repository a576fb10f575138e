// Numbers are added up by MPI in the background, and counted on in the same variables.
// With few ranks and small numbers MPI has often read them by then.
//
// expect: NCCL CHECK: race: what MPI_Iallreduce sends was changed before its request was
//     completed
// expect: rank 0 on @host: MPI_Iallreduce at @add
#include "../check.h"

enum { N = 3 };

int main(void) {
    start();
    int *counted = calloc(N, sizeof *counted), sent[N], sums[N];
    for (int step = 1; step <= 3; step++) {
        MPI_Request request;
        for (int i = 0; i < N; i++)
            counted[i] = step * rank;
        const int *from = counted;
#ifdef FIXED
        from = memcpy(sent, counted, sizeof sent);
#endif
        // @add
        MPI_Iallreduce(from, sums, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        if (rank == 0)
            memset(counted, -1, N * sizeof *counted);
        use_comm(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#ifdef FIXED
        for (int i = 0; i < N; i++)
            EXPECT(sums[i], step * sum_of_ranks());
#endif
    }
    free(counted);
    (void)sent;
    finish();
    return 0;
}
