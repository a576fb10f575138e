// 17.2 Everybody puts, everybody gets (repair)
// make exercise N=17.2

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
    CHECK_NCCL(ncclGetUniqueId(&id));
    store_set("id", &id, sizeof id);
    (void)rank;
    return id;
}
