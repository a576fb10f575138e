//: kind complete
//: title Who is to be left out
//: trains the list of ncclCommShrink
//: setup comm
//: ranks 4 3 | 5 7 8
//: build cpu
//: starter element 0 of the sum of those who are left is …, expected
//: learned The list of ncclCommShrink has ranks of the old communicator, and only those who stay make the call.
//: why Everybody who stays calls with the same list, the ranks that are not alive; whoever is left out doesn't call.
//: hint ncclCommShrink wants the ranks that go, and alive[] says who stays.
//: hint Count them into an array; all who stay give the same array.
//: hint if (!alive[rank]) return NULL; then the list, and ncclCommShrink(comm, list, n, &made, NULL, NCCL_SHRINK_DEFAULT).
//: file

/*
 * alive[r] says whether rank r of `comm` goes on. Make a communicator of those who do,
 * with ncclCommShrink, and return it; a rank that does not go on returns NULL.
 */
#include "lesson.h"

ncclComm_t of_those_left(ncclComm_t comm, const bool *alive, int rank, int nranks) {
    ncclComm_t made = NULL;
    //: starter
    (void)alive, (void)rank, (void)nranks;
    made = comm;
    //: solution
    int list[nranks], n = 0;
    if (!alive[rank])
        return NULL;
    for (int r = 0; r < nranks; r++)
        if (!alive[r])
            list[n++] = r;
    CHECK_NCCL(ncclCommShrink(comm, list, n, &made, NULL, NCCL_SHRINK_DEFAULT));
    //: wrong all-call: ncclCommShrink
    int list[nranks], n = 0;
    for (int r = 0; r < nranks; r++)
        if (!alive[r])
            list[n++] = r;
    CHECK_NCCL(ncclCommShrink(comm, list, n, &made, NULL, NCCL_SHRINK_DEFAULT));
    //: wrong list-of-alive: ncclCommShrink
    int list[nranks], n = 0;
    if (!alive[rank])
        return NULL;
    for (int r = 0; r < nranks; r++)
        if (alive[r])
            list[n++] = r;
    CHECK_NCCL(ncclCommShrink(comm, list, n, &made, NULL, NCCL_SHRINK_DEFAULT));
    //: wrong the-old-one: NCCL CHECK:
    (void)nranks;
    made = alive[rank] ? comm : NULL;
    //: end
    return made;
}
//: check
ncclComm_t of_those_left(ncclComm_t comm, const bool *alive, int rank, int nranks);

void check(void) {
    for (int round = 0; round < 2; round++) {
        // The last rank goes; then, where there are enough, two of them.
        bool alive[64];
        int left = 0;
        for (int r = 0; r < check_nranks; r++) {
            alive[r] =
                r != check_nranks - 1 && !(round == 1 && r == 0 && check_nranks > 3);
            left += alive[r];
        }
        check_case("%d of %d ranks go on", left, check_nranks);
        float value = (float)check_data(check_rank, 0), expected = 0;
        for (int r = 0; r < check_nranks; r++)
            expected += alive[r] ? (float)check_data(r, 0) : 0;
        float *buf = check_device(sizeof value);
        check_put(buf, &value, sizeof value);
        ncclComm_t made = of_those_left(check_comm, alive, check_rank, check_nranks);
        check_that((made != NULL) == alive[check_rank],
                   alive[check_rank]
                       ? "a rank that goes on has got no communicator"
                       : "a rank that does not go on has got a communicator");
        if (made) {
            CHECK_NCCL(
                ncclAllReduce(buf, buf, 1, ncclFloat32, ncclSum, made, check_stream));
            check_buffer("the sum of those who are left", buf, &expected, 1, ncclFloat32);
            if (made != check_comm)
                CHECK_NCCL(ncclCommDestroy(made));
        }
    }
}
