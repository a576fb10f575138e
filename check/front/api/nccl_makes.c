/*
 * nccl_makes.c: the calls that make communicators.
 */
#include "nccl_front.h"
#include "rendezvous.h"
#include "start.h"
#include "talk.h"

/* The call that makes `out` begins. In a group it happens at the end. */
static void newcomm_begins(ncclComm_t *out, ncclComm_t parent, uint64_t id,
                           struct judge_join join) {
    struct newcomm *newcomm = must_alloc(sizeof *newcomm);
    struct comm like = {.id = id, .rank = join.rank, .nranks = join.nranks};
    like.device = join.device, like.join = join, like.at = join.at;
    *newcomm = (struct newcomm){nccl_group.newcomms, out, parent, like};
    nccl_group.newcomms = newcomm;
}

static __thread uint64_t joined; // so often

void newcomms_end(ncclResult_t result) {
    joined += nccl_group.newcomms && !nccl_failed(result) &&
              !nccl_group.newcomms->parent && nccl_group.newcomms->like.id;
    while (nccl_group.newcomms) {
        struct newcomm newcomm = *nccl_group.newcomms;
        free(nccl_group.newcomms);
        nccl_group.newcomms = newcomm.next;
        if (nccl_failed(result) || !newcomm.out)
            continue;
        if (*newcomm.out && result == ncclSuccess &&
            (newcomm.like.id || comm_is_ready(*newcomm.out))) {
            newcomm.like.slow = comm_now(newcomm.parent).slow;
            comm_is_there(*newcomm.out, newcomm.like);
        } else if (*newcomm.out || newcomm.parent) {
            newcomm_promised(&newcomm);
            comm_take_promised(false);
        }
    }
}

ncclResult_t newcomm_returned(ncclResult_t result, struct judge_at at) {
    if (nccl_group.depth > 0) {
        if (nccl_failed(result)) {
            struct newcomm *newest = nccl_group.newcomms;
            nccl_group.newcomms = newest->next;
            free(newest);
        }
        return nccl_answer(result, at);
    }
    if (nccl_failed(result))
        talk_settles();
    bool slow = nccl_group.newcomms && comm_now(nccl_group.newcomms->parent).slow;
    TELL(judge_wait_end, result == ncclSuccess && !slow);
    newcomms_end(result);
    return nccl_answer(result, at);
}

/* Whether NCCL takes several ranks on one GPU: "since 2.30", and if it is told to (NCCL
 * User Guide, NCCL_MULTI_RANK_GPU_ENABLE). */
static bool gpus_are_shared(void) {
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version = 0;
    return allowed && atoi(allowed) != 0 &&
           CALL(PNCCL(ncclGetVersion), &version) == ncclSuccess && version >= 23000;
}

uint64_t comm_hash_ids(const ncclUniqueId *ids, int n) {
    uint64_t id = 0;
    for (int i = 0; ids && i < n; i++)
        id = hash_bytes(&ids[i], sizeof ids[i], id);
    return id;
}

/* How far a configuration goes depends on the header that the program was compiled with;
 * this is the beginning of it since NCCL 2.27 (nccl.h). */
struct named_config {
    size_t size;
    unsigned int magic, version;
    int before[4];
    const char *network;
    int between[2];
    const char *name;
};

static void is_named(struct judge *j, uint64_t id, const ncclConfig_t *given) {
    const ncclConfig_t usual = NCCL_CONFIG_INITIALIZER;
    struct named_config config;
    if (!given || given->magic != usual.magic || given->size < sizeof config)
        return;
    memcpy(&config, given, sizeof config);
    if (config.name && config.name[0])
        judge_comm_named(j, id, config.name);
}

void comm_joins(ncclComm_t *out, const ncclUniqueId *ids, int nids, int nranks, int rank,
                const ncclConfig_t *config, struct judge_at at) {
    uint64_t id = comm_hash_ids(ids, nids);
    // All communicators have that. The first one is to have as many ranks everywhere.
    if (getenv("NCCL_COMM_ID")) {
        const uint64_t use[] = {joined, joined ? (uint64_t)nranks : 0};
        id = hash_bytes(use, sizeof use, id);
    }
    struct judge_join join = {.id = id, .rank = rank, .nranks = nranks, .at = at};
    const bool meets = !OVER_STANDIN || !out || !ids || nids <= 0 ||
                       STANDIN(announces)(NULL, ids, rank, nranks);
    const struct start_join start = {ids, ids ? nids : 0, rank, nranks};
    start_communicates(nranks <= 1 || nccl_group.depth > 0 ? NULL : &start);
    join.device = current_device();
    if (!gpus_are_shared())
        CALL(BELOW(cudaDeviceGetPCIBusId), join.bus_id, (int)sizeof join.bus_id,
             join.device);
    newcomm_begins(out, NULL, id, join);
    struct judge *j = front_in();
    is_named(j, id, config);
    if (out && rank >= 0 && rank < nranks && meets)
        judge_joins(j, &join);
    else // NCCL will refuse it
        judge_not_told(j);
    if (nccl_group.depth == 0)
        judge_wait_launch(j, at);
    front_out();
}

/* Needs no other process: nothing to wait for. */
ncclResult_t ncclCommInitAll(ncclComm_t *out, int n, const int *devices) {
    ENTER_NCCL(ncclCommInitAll, out, n, devices);
    static uint64_t calls;
    start_communicates(NULL);
    ncclResult_t result = CALL(PNCCL(ncclCommInitAll), out, n, devices);
    if (result != ncclSuccess)
        return nccl_answer(result, at);
    struct judge *j = front_in();
    const uint64_t unique[] = {++calls, (uintptr_t)out[0]};
    uint64_t id =
        hash_bytes(unique, sizeof unique, hash_bytes(front_host, strlen(front_host), 1));
    for (int i = 0; i < n; i++) {
        struct comm like = {.state = THERE,
                            .id = id,
                            .rank = i,
                            .nranks = n,
                            .device = devices ? devices[i] : i,
                            .at = at};
        comm_announce(j, out[i], &like);
    }
    front_out();
    return result;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    ENTER_NCCL(ncclGetUniqueId, id);
    ncclResult_t result = CALL(PNCCL(ncclGetUniqueId), id);
    if (result != ncclSuccess)
        return nccl_answer(result, at);
    rendezvous_id_made(id);
    TELL(judge_id_made, comm_hash_ids(id, 1), 0, at);
    return result;
}

bool comm_together(ncclComm_t handle, enum judge_kind kind, int color, uint64_t *id,
                   size_t bytes, struct judge_at at) {
    struct comm *comm;
    struct judge *j = comm_in(handle, &comm, at);
    bool there = comm && comm->state == THERE;
    if (there) {
        struct judge_call call = {.comm = comm->number,
                                  .stream = -1,
                                  .kind = kind,
                                  .root = -1,
                                  .count = bytes,
                                  .at = at};
        if (id) {
            *id = judge_split_id(j, comm->number, color);
            for (const struct newcomm *one = nccl_group.newcomms; one; one = one->next)
                if (one->parent == handle) // another one in the same group
                    *id = hash_bytes(id, sizeof *id, 2);
        }
        judge_call(j, &call);
        if (nccl_group.depth == 0)
            judge_wait_launch(j, at);
    }
    uint64_t counted = there ? comm->id : 0;
    int rank = there ? comm->rank : 0;
    front_out();
    if (timeline_on && there)
        timeline_counts(counted, rank);
    return there;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config) {
    ENTER_COMM(ncclCommSplit, comm, color, key, out, config);
    uint64_t id;
    comm_entered(comm, at);
    bool known = comm_together(comm, JUDGE_SPLIT, color, &id, 0, at);
    if (known && color != NCCL_SPLIT_NOCOLOR)
        TELL(is_named, id, config);
    if (known)
        newcomm_begins(color == NCCL_SPLIT_NOCOLOR ? NULL : out, comm, id,
                       (struct judge_join){.rank = -1, .at = at});
    ncclResult_t result =
        known ? MEETS(comm_now(comm).id,
                      CALL(PNCCL(ncclCommSplit), comm, color, key, out, config))
              : CALL(PNCCL(ncclCommSplit), comm, color, key, out, config);
    comm_left();
    return known ? newcomm_returned(result, at) : nccl_answer(result, at);
}

#ifdef NCCL_SHRINK_DEFAULT
static bool contains(const int *list, int n, int rank) {
    for (int i = 0; i < n; i++)
        if (list[i] == rank)
            return true;
    return false;
}

/* Those that are left out do not call it: it is nothing that all ranks of the
 * communicator do. Those that do call it have all called it as often with the same list.
 */
static uint64_t id_of_shrunk(struct comm *parent, const int *excluded, int nexcluded) {
    uint64_t list = parent->id; // in any order
    for (int r = 0; r < parent->nranks; r++)
        if (contains(excluded, nexcluded, r))
            list = hash_bytes(&r, sizeof r, list);
    uintptr_t times = (uintptr_t)map_get(&parent->shrunk, list) + 1;
    map_put(&parent->shrunk, list, (void *)times);
    return hash_bytes(&times, sizeof times, list);
}

/* How many ranks before this one are left out; -1: the list is wrong. */
static int left_out(const struct comm *parent, const int *excluded, int n, int before) {
    int found = 0;
    for (int i = 0; i < n; i++)
        if (excluded[i] < 0 || excluded[i] >= parent->nranks)
            return -1;
    for (int r = 0; r < before; r++)
        found += contains(excluded, n, r);
    return found;
}

static void shrinks(struct judge *j, struct comm *parent, const int *excluded, int n,
                    ncclComm_t *out, ncclComm_t handle, struct judge_at at) {
    int before = excluded ? left_out(parent, excluded, n, parent->rank) : -1;
    int all = excluded ? left_out(parent, excluded, n, parent->nranks) : -1;
    bool itself = all > 0 && contains(excluded, n, parent->rank);
    const uint64_t id = id_of_shrunk(parent, excluded, excluded ? n : 0);
    const struct judge_join join = {.id = id,
                                    .rank = parent->rank - before,
                                    .nranks = parent->nranks - all,
                                    .device = parent->device,
                                    .how = JUDGE_SHRINKS,
                                    .at = at};
    newcomm_begins(out, handle, id, join);
    if (itself)
        judge_found(j, JUDGE_SHRINKS_ITSELF, parent->number, (struct judge_at){0}, at);
    if (before < 0 || all < 1 || itself) { // NCCL will refuse it
        judge_not_told(j);
        return;
    }
    judge_joins(j, &join);
    if (nccl_group.depth == 0)
        judge_wait_launch(j, at);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int nexcluded,
                            ncclComm_t *out, ncclConfig_t *config, int flags) {
    ENTER_COMM(ncclCommShrink, comm, excluded, nexcluded, out, config, flags);
    struct comm *parent;
    struct judge *j = comm_in(comm, &parent, at);
    bool there = parent && parent->state == THERE;
    if (there) {
        shrinks(j, parent, excluded, nexcluded, out, comm, at);
        is_named(j, nccl_group.newcomms->like.id, config);
    }
    front_out();
    ncclResult_t result =
        CALL(PNCCL(ncclCommShrink), comm, excluded, nexcluded, out, config, flags);
    return there ? newcomm_returned(result, at) : nccl_answer(result, at);
}
#endif

#if NCCL_VERSION_CODE >= 22900
/* The old ranks are not told the id that the new ones have: they know how often their
 * communicator has grown. */
static uint64_t id_of_grown(const struct comm *parent) {
    return hash_bytes(&parent->grown, sizeof parent->grown, ~parent->id);
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
    ENTER_COMM(ncclCommGetUniqueId, comm, id);
    ncclResult_t result = CALL(PNCCL(ncclCommGetUniqueId), comm, id);
    struct judge *j = front_in();
    const struct comm *parent = comm_known(comm);
    if (result == ncclSuccess && parent && parent->state == THERE)
        judge_id_made(j, comm_hash_ids(id, 1), id_of_grown(parent), at);
    front_out();
    return nccl_answer(result, at);
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
                          ncclComm_t *out, ncclConfig_t *config) {
    ENTER_COMM(ncclCommGrow, comm, nranks, id, rank, out, config);
    struct comm *parent = NULL;
    struct judge_join join = {
        .rank = rank, .nranks = nranks, .how = JUDGE_GROWS, .at = at};
    if (OVER_STANDIN)
        STANDIN(announces)(comm, id, rank, nranks);
    const struct start_join start = {id, id ? 1 : 0, rank, nranks};
    start_communicates(nccl_group.depth > 0 ? NULL : &start);
    join.device = current_device();
    struct judge *j = comm_in(comm, &parent, at);
    bool old = parent && parent->state == THERE && rank == -1 && nranks > parent->nranks;
    if (old)
        join.id = id_of_grown(parent), parent->grown++, join.rank = parent->rank;
    else if (!comm && id && rank >= 0 && rank < nranks)
        join.id = comm_hash_ids(id, 1);
    if (join.id) {
        judge_joins(j, &join);
        if (nccl_group.depth == 0)
            judge_wait_launch(j, at);
    } else { // NCCL will refuse it
        judge_not_told(j);
    }
    front_out();
    if (join.id)
        newcomm_begins(out, comm, 0, join); // its number is asked for, once it is there
    ncclResult_t result = CALL(PNCCL(ncclCommGrow), comm, nranks, id, rank, out, config);
    return join.id ? newcomm_returned(result, at) : nccl_answer(result, at);
}
#endif

bool newcomms_complete(void) {
    for (const struct newcomm *one = nccl_group.newcomms; one; one = one->next) {
        int n = 0;
        for (const struct newcomm *other = nccl_group.newcomms; other;
             other = other->next)
            n += !other->parent && other->like.id == one->like.id;
        if (!one->parent && n < one->like.nranks)
            return false;
    }
    return true;
}
