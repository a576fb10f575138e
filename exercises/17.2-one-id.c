//: kind repair
//: title Everybody puts, everybody gets
//: trains who makes the unique id
//: setup mpi
//: ranks 2 4 | 1 3 7 8
//: starter have made more than one id
//: learned One rank makes the unique id and stores it; all others get it.
//: why Only rank 0 makes and stores an id; everybody else waits for that one in store_get.
//: hint How many unique ids are made?
//: hint ncclGetUniqueId gives a different id each time. Which rank's id must all use?
//: hint if (rank == 0) { make it; store_set } else store_get.
//: file

/*
 * "Our program works with one process. With more, ncclCommInitRank never returns. But we
 * do put the id into the store!"
 *
 * store_set(key, value, bytes) stores a value, and replaces one of the same key;
 * store_get(key, value, bytes) waits until there is one. Repair the function: it returns
 * the id that all ranks are to use.
 */
#include "lesson.h"

void store_set(const char *key, const void *value, size_t bytes);
void store_get(const char *key, void *value, size_t bytes);

ncclUniqueId common_id(int rank) {
    ncclUniqueId id;
    //: starter
    CHECK_NCCL(ncclGetUniqueId(&id));
    store_set("id", &id, sizeof id);
    (void)rank;
    //: solution
    if (rank == 0) {
        CHECK_NCCL(ncclGetUniqueId(&id));
        store_set("id", &id, sizeof id);
    } else {
        store_get("id", &id, sizeof id);
    }
    //: wrong all-set-all-get: have made more than one id
    CHECK_NCCL(ncclGetUniqueId(&id));
    store_set("id", &id, sizeof id);
    store_get("id", &id, sizeof id);
    (void)rank;
    //: wrong pointer-size: does not give the unique id that rank 0 made
    memset(&id, 0, sizeof id);
    if (rank == 0) {
        CHECK_NCCL(ncclGetUniqueId(&id));
        store_set("id", &id, sizeof(void *));
    } else {
        store_get("id", &id, sizeof(void *));
    }
    //: wrong nobody-sets: does not give the unique id that rank 0 made
    memset(&id, 0, sizeof id);
    if (rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    //: end
    return id;
}
//: check
static ncclUniqueId stored, first;
static size_t stored_bytes;
static int nsets;

/* A store for one case: rank 0 acts first, then the others; what rank 0 has set is sent
 * to them, and nothing else. */
void store_set(const char *key, const void *value, size_t bytes) {
    (void)key;
    nsets++;
    memcpy(&stored, value, bytes);
    stored_bytes = bytes;
}

void store_get(const char *key, void *value, size_t bytes) {
    (void)key;
    memcpy(value, &stored, bytes < stored_bytes ? bytes : stored_bytes);
}

ncclUniqueId common_id(int rank);

void check(void) {
    ncclUniqueId mine;
    int all;
    check_case("%d ranks", check_nranks);
    if (check_rank == 0)
        first = mine = common_id(0);
    CHECK_MPI(MPI_Bcast(&stored, sizeof stored, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Bcast(&stored_bytes, sizeof stored_bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (check_rank != 0)
        mine = common_id(check_rank);
    CHECK_MPI(MPI_Allreduce(&nsets, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    check_that(memcmp(&mine, &first, sizeof mine) == 0 && all > 0,
               "rank %d does not give the unique id that rank 0 made, through the store",
               check_rank);
    check_that(all <= 1, "the ranks have made more than one id: %d were stored", all);
}
