// Messages that are received at the last moment: before they are sent, with the request
// freed; taken out with MPI_Mprobe; after MPI_Iprobe has seen them; from anybody; to
// oneself; and by a function of the program that MPI_Finalize calls (MPI 4.1, 11.2.4).
#include "../check.h"

static int late, early;

static int receives(MPI_Comm self, int key, void *value, void *extra) {
    (void)self;
    (void)key;
    (void)value;
    (void)extra;
    if (rank == 0)
        for (int r = 1; r < nranks; r++)
            MPI_Recv(&late, 1, MPI_INT, r, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

int main(void) {
    start();
    int key, word = rank, there = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receives, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Request request, self;
    MPI_Message message;
    if (rank == 0) {
        MPI_Irecv(&early, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        for (int tag = 1; tag <= 3; tag++)
            MPI_Send(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    if (rank > 0)
        MPI_Send(&word, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    MPI_Isend(&rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &self);
    if (rank == 0) {
        MPI_Mprobe(1, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        while (!there)
            MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&word, 1, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&self, MPI_STATUS_IGNORE);
    use_comm(comm);
    finish();
    return 0;
}
