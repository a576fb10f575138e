// What ranks may give as the type of the same data: other names of an integer, signed or
// not; types of the program's own; bytes, characters and packed data for anything; parts
// of a complex number; and any type where nothing is sent or the argument is not
// significant (MPI 4.1, 3.3.1 and chapter 6; bytes for numbers are not in it, but all
// machines of a job store them alike).
#include "../check.h"

#include <stdint.h>

/* One value from rank 0, which the other ranks take for another type. */
static void brings(MPI_Datatype here, int count, MPI_Datatype there, int pieces) {
    long long value[2] = {rank == 0 ? 7 : 0, rank == 0 ? 9 : 0};
    MPI_Bcast(value, rank == 0 ? count : pieces, rank == 0 ? here : there, 0,
              MPI_COMM_WORLD);
    EXPECT(value[0], count == 0 && rank > 0 ? 0 : 7);
}

int main(void) {
    start();
    brings(MPI_LONG_LONG, 1, MPI_INT64_T, 1);
    brings(MPI_LONG, 1, MPI_UINT64_T, 1);
    brings(MPI_UNSIGNED_LONG, 1, MPI_AINT, 1);
    brings(MPI_OFFSET, 1, MPI_COUNT, 1);
    brings(MPI_INT32_T, 2, MPI_UNSIGNED, 2);
    brings(MPI_SHORT, 4, MPI_UINT16_T, 4);
    brings(MPI_DOUBLE, 1, MPI_BYTE, 8);
    brings(MPI_CHAR, 8, MPI_DOUBLE, 1);
    brings(MPI_UNSIGNED_CHAR, 8, MPI_INT8_T, 8);
    brings(MPI_SIGNED_CHAR, 8, MPI_UINT8_T, 8);
    brings(MPI_FLOAT, 2, MPI_C_FLOAT_COMPLEX, 1);
    brings(MPI_FLOAT, 2, MPI_FLOAT_INT, 1);
    brings(MPI_DOUBLE, 1, MPI_DOUBLE_PRECISION, 1);
    brings(MPI_INTEGER, 2, MPI_INT, 2);
    brings(MPI_PACKED, 8, MPI_FLOAT, 2);
    brings(MPI_INT, 0, MPI_FLOAT, 0);

    // A type of the program's own.
    MPI_Datatype own;
    MPI_Type_contiguous(2, MPI_FLOAT, &own);
    MPI_Type_commit(&own);
    brings(own, 1, MPI_FLOAT, 2);
    MPI_Type_free(&own);
    MPI_Type_dup(MPI_DOUBLE, &own);
    brings(own, 1, MPI_DOUBLE, 1);
    MPI_Type_free(&own);

    // In place, and where the argument is not significant.
    int *all = calloc((size_t)nranks, sizeof *all), mine = rank;
    all[rank] = rank;
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : &mine, 1, rank == 0 ? MPI_FLOAT : MPI_INT, all,
               1, rank == 0 ? MPI_INT : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    EXPECT(rank == 0 ? all[nranks - 1] : nranks - 1, nranks - 1);
    MPI_Scatter(all, 1, rank == 0 ? MPI_INT : MPI_FLOAT,
                rank == 0 ? MPI_IN_PLACE : (void *)&mine, 1,
                rank == 0 ? MPI_FLOAT : MPI_INT, 0, MPI_COMM_WORLD);
    all[rank] = rank;
    MPI_Allgather(MPI_IN_PLACE, 1, rank == 0 ? MPI_FLOAT : MPI_DOUBLE, all, 1, MPI_INT,
                  MPI_COMM_WORLD);
    EXPECT(all[nranks - 1], nranks - 1);
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    // Between two ranks.
    MPI_Sendrecv(&mine, 1, MPI_INT, MPI_PROC_NULL, 0, all, 1, MPI_FLOAT, MPI_PROC_NULL, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        MPI_Send(&mine, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else if (rank == 1)
        MPI_Recv(&mine, sizeof mine, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(all);
    use_comm(comm);
    finish();
    return 0;
}
