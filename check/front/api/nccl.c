/*
 * nccl.c: NCCL's functions.
 *
 * Each is told before it is called, since the others may wait for it and it for them; one
 * that fails is taken back. A communicator is known from the moment it is there: behind
 * the call that makes it, behind ncclGroupEnd, or, where it does not block, when
 * ncclCommGetAsyncError says so. One that was given up stays known, so that using it can
 * be named instead of reading freed memory. NCCL User Guide, "Creating a Communicator",
 * "Group Calls", "Fault Tolerance".
 */
#include "answer.h"
#include "comms.h"
#include "registered.h"
#include "start.h"
#include "talk.h"
#include "timeline.h"

#pragma GCC visibility push(default)
#include <stdio.h>
#include <nccl.h>
#pragma GCC visibility pop
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- Communicators -------------------------------------------------------------- */

struct redop { // made by ncclRedOpCreatePreMulSum
    struct redop *next;
    ncclRedOp_t op;
    const void *scalar; // on the device; NULL: it was read already
};

enum { COMM_STREAMS = 4 };

struct comm {
    enum { COMING, THERE, GONE } state;
    bool ending; // finalized, and not done yet as far as the program has asked
    bool slow;   // it does not block
    cudaStream_t streams[COMM_STREAMS]; // that its newest calls are on
    int nstreams;
    int number;     // the judge's; not while it is coming
    unsigned asked; // how often the program had heard that one is ready, when it came
    uint64_t id;
    int rank, nranks, device; // rank -1: to be asked
    struct redop *redops;
    struct judge_at at;
};
static struct table comms;
/* How often the program was told by ncclCommGetAsyncError that a communicator is ready.
 */
static unsigned heard_ready;

/* A communicator that a call of this thread makes: where it will be written to, and what
 * is known. */
struct made {
    struct made *next;
    ncclComm_t *out, parent; // parent: of a split
    struct comm like;
};
static __thread struct {
    int depth;
    struct made *makes; // those of the open group
} group;

bool group_is_open(void) {
    return group.depth > 0;
}

static struct comm *known(ncclComm_t handle) {
    return table_get(&comms, handle);
}

/* 0: it is not known. */
static uint64_t id_of(ncclComm_t handle) {
    front_in();
    uint64_t id = known(handle) ? known(handle)->id : 0;
    front_out();
    return id;
}

static const struct comm *announce(struct judge *j, ncclComm_t handle,
                                   const struct comm *like) {
    struct comm *comm = known(handle);
    if (!comm)
        table_put(&comms, handle, comm = front_alloc(sizeof *comm));
    while (comm->redops) {
        struct redop *first = comm->redops;
        comm->redops = first->next;
        free(first);
    }
    *comm = *like;
    if (comm->state == THERE)
        comm->number = judge_comm_made(j, comm->id, comm->rank, comm->nranks,
                                       comm->device, comm->at);
    return comm;
}

/* Outside of front_in: what a split made is asked for. */
static void complete(ncclComm_t handle, struct comm *comm) {
    if (comm->rank >= 0)
        return;
    CALL(PNCCL(ncclCommUserRank), handle, &comm->rank);
    CALL(PNCCL(ncclCommCount), handle, &comm->nranks);
    CALL(PNCCL(ncclCommCuDevice), handle, &comm->device);
}

static void comm_is_there(ncclComm_t handle, struct comm like) {
    like.state = THERE;
    complete(handle, &like);
    announce(front_in(), handle, &like);
    front_out();
}

/* A communicator that does not block and was coming may be there by now. True: it was
 * on the way. */
static bool look_again(ncclComm_t handle) {
    struct comm *comm, like;
    ncclResult_t state = ncclSuccess;
    front_in();
    comm = known(handle);
    bool coming = comm && comm->state == COMING;
    if (coming)
        like = *comm;
    front_out();
    if (coming && CALL(PNCCL(ncclCommGetAsyncError), handle, &state) == ncclSuccess &&
        state == ncclSuccess)
        comm_is_there(handle, like);
    return coming;
}

/* NCCL 2.28.3 writes what is split off a communicator that does not block when it is
 * ready, and the handle is NULL until then. */
static struct made *later;

static void comes_later(const struct made *made) {
    struct made *mine = front_alloc(sizeof *mine);
    front_in();
    *mine = *made;
    mine->like.state = COMING;
    mine->like.slow = true;
    mine->like.asked = heard_ready;
    mine->next = later;
    later = mine;
    front_out();
}

/* Those that have come. `asked`: the program was told so. */
static void have_come(bool asked) {
    while (later) {
        struct judge *j = front_in();
        struct made **at = &later, *one;
        while (*at && !*(*at)->out)
            at = &(*at)->next;
        if ((one = *at)) {
            *at = one->next;
            announce(j, *one->out, &one->like);
        }
        front_out();
        if (!one)
            return;
        if (asked)
            comm_is_there(*one->out, one->like);
        free(one);
    }
}

/* A communicator is given up, and what was coming from it. */
static void is_gone(const void *handle, struct comm *comm) {
    comm->state = GONE;
    comm->ending = false;
    registered_gone(handle, NULL);
    for (struct made **at = &later; *at;) {
        struct made *one = *at;
        if (one->parent == handle) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

/* The communicator, which is about to be used; the judge is entered. One that is still on
 * the way is not ready to be, and one that has come meanwhile was ready by luck, if the
 * program has asked for none since then. */
static struct judge *front_in_comm(ncclComm_t handle, struct comm **comm,
                                   struct judge_at at) {
    have_come(false);
    bool was_coming = look_again(handle);
    struct judge *j = front_in();
    *comm = known(handle);
    if (was_coming && *comm &&
        ((*comm)->state == COMING || (*comm)->asked == heard_ready))
        judge_comm_used_before(j, (*comm)->at, at);
    return j;
}

/* --- Failures ------------------------------------------------------------------- */

static const char *in_words(ncclResult_t result, char *out, size_t bytes) {
    const char *last = CALL(PNCCL(ncclGetLastError), NULL);
    const char *text = last && last[0] ? last : CALL(PNCCL(ncclGetErrorString), result);
    snprintf(out, bytes, "%s", text);
    out[strcspn(out, "\n")] = '\0';
    return out;
}

static bool failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
}

static ncclResult_t answer_nccl(ncclResult_t result, struct judge_at at) {
    char text[256];
    if (!failed(result))
        return result;
    in_words(result, text, sizeof text);
    front_failed(false, text, at);
    return result;
}

static void call_has_returned(ncclResult_t result) {
    struct judge *j = front_in();
    judge_call_answered(j, result == ncclInProgress);
    judge_wait_end(j, result == ncclSuccess);
    front_out();
}

/* Behind a call that waited. */
static ncclResult_t wait_ends(ncclResult_t result, struct judge_at at) {
    call_has_returned(result);
    return answer_nccl(result, at);
}

/* The program's CUDA is what is called below here; with `used` it must have been used.
 * Gives up otherwise. */
static bool sees_cuda(bool used) {
#ifndef FRONT_LINKED
    if (!BELOW(cudaGetDevice) || (used && !front_saw_cuda)) {
        talk_gives_up("the CUDA runtime is linked statically, as nvcc does if nothing is"
                      " said; link with nvcc -cudart shared");
        return false;
    }
#endif
    (void)used;
    return true;
}

/* The first lines of a function. */
#define PASS_NCCL(name, ...)                      \
    do {                                          \
        if (NOT_THE_PROGRAM || !sees_cuda(false)) \
            return PNCCL(name)(__VA_ARGS__);      \
    } while (0)
#define ENTER_NCCL(name, ...)       \
    PASS_NCCL(name, ##__VA_ARGS__); \
    AT_HERE;                        \
    check_enters(at)

/* The same for one that uses a communicator: one that was given up is not passed on. */
static bool given_up(ncclComm_t handle, struct judge_at at) {
    struct judge *j = front_in();
    const struct comm *comm = known(handle);
    bool gone = comm && comm->state == GONE && front_checks;
    if (gone)
        judge_comm_used_after(j, comm->number, at);
    front_out();
    return gone;
}
#define ENTER_COMM(name, ...)        \
    ENTER_NCCL(name, ##__VA_ARGS__); \
    if (given_up(comm, at))          \
    return ncclInvalidArgument

/* Who is in a call on which communicator, from the first moment on: before the judge's
 * lock, for which a second thread would wait until the first has left. Of communicators
 * that share a place only one is looked at. */
enum { PLACES = 64 };
static struct call_place {
    int thread; // 0: nobody's
    ncclComm_t comm;
    struct judge_at at;
} in_call[PLACES];
static __thread struct call_place *mine;

static void enters(ncclComm_t handle, struct judge_at at) {
    struct call_place *place = &in_call[(uintptr_t)handle / 64 % PLACES];
    int nobody = 0, thread = front_thread();
    if (__atomic_compare_exchange_n(&place->thread, &nobody, thread, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        mine = place;
        place->at = at;
        __atomic_store_n(&place->comm, handle, __ATOMIC_RELEASE);
        return;
    }
    if (nobody == thread || __atomic_load_n(&place->comm, __ATOMIC_ACQUIRE) != handle)
        return;
    const struct judge_at other = place->at;
    struct judge *j = front_in();
    const struct comm *comm = known(handle);
    if (comm && comm->state == THERE)
        judge_two_threads(j, comm->number, other, at);
    front_out();
}

static void leaves(void) {
    if (!mine)
        return;
    __atomic_store_n(&mine->comm, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&mine->thread, 0, __ATOMIC_RELEASE);
    mine = NULL;
}

const char *ncclGetErrorString(ncclResult_t result) {
    PASS_NCCL(ncclGetErrorString, result);
    judge_looked(front_in());
    front_out();
    return CALL(PNCCL(ncclGetErrorString), result);
}

const char *ncclGetLastError(ncclComm_t comm) {
    PASS_NCCL(ncclGetLastError, comm);
    front_in();
    bool gone = known(comm) && known(comm)->state == GONE;
    front_out();
    judge_looked(front_in());
    front_out();
    return CALL(PNCCL(ncclGetLastError), gone ? NULL : comm);
}

/* --- Making them ---------------------------------------------------------------- */

static uint64_t hash(const void *data, size_t bytes, uint64_t before) {
    const unsigned char *at = data;
    uint64_t h = before ^ UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* The call that makes `out` begins. In a group it happens at the end. */
static void making(ncclComm_t *out, ncclComm_t parent, struct comm like) {
    struct made *made = front_alloc(sizeof *made);
    *made = (struct made){group.makes, out, parent, like};
    group.makes = made;
}

/* What the calls made that are told of since the group began, or by this one alone. */
static void makes_end(ncclResult_t result) {
    while (group.makes) {
        struct made made = *group.makes;
        free(group.makes);
        group.makes = made.next;
        if (failed(result) || !made.out)
            continue;
        if (!*made.out) {
            if (made.parent)
                comes_later(&made);
            continue;
        }
        if (result == ncclSuccess) {
            comm_is_there(*made.out, made.like);
            continue;
        }
        made.like.state = COMING;
        made.like.slow = true;
        struct judge *j = front_in();
        made.like.asked = heard_ready;
        announce(j, *made.out, &made.like);
        front_out();
    }
}

static void drop_newest_make(void) {
    struct made *newest = group.makes;
    group.makes = newest->next;
    free(newest);
}

/* Behind a call that makes a communicator, inside a group or not. */
static ncclResult_t made_by(ncclResult_t result, struct judge_at at) {
    if (group.depth > 0) {
        if (failed(result))
            drop_newest_make();
        return answer_nccl(result, at);
    }
    if (failed(result))
        talk_settles();
    judge_wait_end(front_in(), result == ncclSuccess);
    front_out();
    makes_end(result);
    return answer_nccl(result, at);
}

/* Whether NCCL takes several ranks on one GPU: "since 2.30", and if it is told to (NCCL
 * User Guide, NCCL_MULTI_RANK_GPU_ENABLE). */
static bool gpus_are_shared(void) {
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version = 0;
    return allowed && atoi(allowed) != 0 &&
           CALL(PNCCL(ncclGetVersion), &version) == ncclSuccess && version >= 23000;
}

static void joins(ncclComm_t *out, uint64_t id, int nranks, int rank,
                  struct judge_at at) {
    struct judge_join join = {.id = id, .rank = rank, .nranks = nranks, .at = at};
    start_communicates(nranks <= 1 || group.depth > 0);
    join.device = current_device();
    if (!gpus_are_shared())
        CALL(BELOW(cudaDeviceGetPCIBusId), join.bus_id, (int)sizeof join.bus_id,
             join.device);
    making(
        out, NULL,
        (struct comm){
            .id = id, .rank = rank, .nranks = nranks, .device = join.device, .at = at});
    struct judge *j = front_in();
    if (out && rank >= 0 && rank < nranks)
        judge_joins(j, &join);
    else // NCCL will refuse it
        judge_not_told(j);
    if (group.depth == 0)
        judge_wait_launch(j, at);
    front_out();
}

/* A call in which all ranks of a communicator meet, outside of a group. */
#define MEETS(id, call)                                                                  \
    ({                                                                                   \
        struct timeline_wait meets = {.at = at, .device = -1, .world = -1, .group = id}; \
        group.depth > 0 ? (call) : HOST_WAITS(&meets, call);                             \
    })

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
    ENTER_NCCL(ncclCommInitRank, comm, nranks, id, rank);
    uint64_t number = hash(&id, sizeof id, 0);
    if (OVER_STANDIN)
        standin_announces(&id, rank, nranks);
    joins(comm, number, nranks, rank, at);
    return made_by(MEETS(number, CALL(PNCCL(ncclCommInitRank), comm, nranks, id, rank)),
                   at);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
    ENTER_NCCL(ncclCommInitRankConfig, comm, nranks, id, rank, config);
    uint64_t number = hash(&id, sizeof id, 0);
    if (OVER_STANDIN)
        standin_announces(&id, rank, nranks);
    joins(comm, number, nranks, rank, at);
    return made_by(MEETS(number, CALL(PNCCL(ncclCommInitRankConfig), comm, nranks, id,
                                      rank, config)),
                   at);
}

#if !OVER_STANDIN && NCCL_VERSION_CODE >= 22300
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nids,
                                      ncclUniqueId *ids, ncclConfig_t *config) {
    ENTER_NCCL(ncclCommInitRankScalable, comm, nranks, rank, nids, ids, config);
    uint64_t id = 0;
    for (int i = 0; ids && i < nids; i++)
        id = hash(&ids[i], sizeof ids[i], id);
    joins(comm, id, nranks, rank, at);
    return made_by(MEETS(id, CALL(PNCCL(ncclCommInitRankScalable), comm, nranks, rank,
                                  nids, ids, config)),
                   at);
}
#endif

/* Needs no other process: nothing to wait for. */
ncclResult_t ncclCommInitAll(ncclComm_t *out, int n, const int *devices) {
    ENTER_NCCL(ncclCommInitAll, out, n, devices);
    static uint64_t calls;
    start_communicates(true);
    ncclResult_t result = CALL(PNCCL(ncclCommInitAll), out, n, devices);
    if (result != ncclSuccess)
        return answer_nccl(result, at);
    struct judge *j = front_in();
    const uint64_t unique[] = {++calls, (uintptr_t)out[0]};
    uint64_t id = hash(unique, sizeof unique, hash(front_host, strlen(front_host), 1));
    for (int i = 0; i < n; i++) {
        struct comm like = {.state = THERE,
                            .id = id,
                            .rank = i,
                            .nranks = n,
                            .device = devices ? devices[i] : i,
                            .at = at};
        announce(j, out[i], &like);
    }
    front_out();
    return result;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    ENTER_NCCL(ncclGetUniqueId, id);
    ncclResult_t result = CALL(PNCCL(ncclGetUniqueId), id);
    if (result != ncclSuccess)
        return answer_nccl(result, at);
    judge_id_made(front_in(), hash(id, sizeof *id, 0), at);
    front_out();
    return result;
}

ncclResult_t ncclGetVersion(int *version) {
    ENTER_NCCL(ncclGetVersion, version);
    return answer_nccl(CALL(PNCCL(ncclGetVersion), version), at);
}

/* A call that all ranks of a communicator make, on no stream. False: it is none that is
 * known. `id`: of what it makes, the same on all ranks. */
static bool tell_together(ncclComm_t handle, enum judge_kind kind, int color,
                          uint64_t *id, size_t bytes, struct judge_at at) {
    struct comm *comm;
    struct judge *j = front_in_comm(handle, &comm, at);
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
            for (const struct made *made = group.makes; made; made = made->next)
                if (made->parent == handle) // another one in the same group
                    *id = hash(id, sizeof *id, 2);
        }
        judge_call(j, &call);
        if (group.depth == 0)
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
    enters(comm, at);
    bool told = tell_together(comm, JUDGE_SPLIT, color, &id, 0, at);
    if (told)
        making(color == NCCL_SPLIT_NOCOLOR ? NULL : out, comm,
               (struct comm){.id = id, .rank = -1, .at = at});
    ncclResult_t result =
        told ? MEETS(id_of(comm),
                     CALL(PNCCL(ncclCommSplit), comm, color, key, out, config))
             : CALL(PNCCL(ncclCommSplit), comm, color, key, out, config);
    leaves();
    return told ? made_by(result, at) : answer_nccl(result, at);
}

#ifdef NCCL_SHRINK_DEFAULT
/* Those that are left out do not call it: nothing that all ranks of the communicator must
 * do. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int nexcluded,
                            ncclComm_t *out, ncclConfig_t *config, int flags) {
    ENTER_COMM(ncclCommShrink, comm, excluded, nexcluded, out, config, flags);
    struct comm *parent;
    struct judge *j = front_in_comm(comm, &parent, at);
    bool there = parent && parent->state == THERE;
    if (there) {
        struct comm like = {.rank = -1, .at = at};
        like.id = hash(excluded, (size_t)nexcluded * sizeof *excluded, parent->id);
        making(out, comm, like);
        if (group.depth == 0)
            judge_wait_launch(j, at);
    }
    front_out();
    ncclResult_t result =
        CALL(PNCCL(ncclCommShrink), comm, excluded, nexcluded, out, config, flags);
    return there ? made_by(result, at) : answer_nccl(result, at);
}
#endif

/* --- Giving them up ------------------------------------------------------------- */

/* `gone`: the handle is none any more. */
static bool tell_end(ncclComm_t handle, enum judge_end how, bool waits,
                     struct judge_at at) {
    have_come(false);
    look_again(handle);
    struct judge *j = front_in();
    struct comm *comm = known(handle);
    if (comm &&
        comm->state == COMING) { // given up on the way: it was there, as far as it came
        struct comm like = *comm;
        like.state = THERE;
        if (like.rank >= 0)
            announce(j, handle, &like);
        else
            comm = NULL;
    }
    if (comm) {
        judge_comm_ends(j, comm->number, how, at);
        if (waits)
            judge_wait_leave(j, comm->number, at);
        if (how == JUDGE_DESTROYED || how == JUDGE_ABORTED)
            is_gone(handle, comm);
    }
    front_out();
    return comm && waits;
}

/* What NCCL had on the device is gone: "it is the caller's responsibility to ensure that
 * the resources are not accessed or passed in subsequent API calls" (CUDA Runtime API,
 * cudaDeviceReset). */
void comms_reset(struct judge *j, int device, struct judge_at at) {
    for (size_t i = 0; i < comms.size; i++) {
        struct comm *comm = comms.at[i].value;
        if (!comm || comm->state != THERE || comm->device != device)
            continue;
        judge_comm_ends(j, comm->number, JUDGE_DESTROYED, at);
        is_gone(comms.at[i].key, comm);
    }
}

static void is_on(struct comm *comm, cudaStream_t stream) {
    for (int i = 0; i < comm->nstreams; i++)
        if (comm->streams[i] == stream)
            return;
    if (comm->nstreams == COMM_STREAMS)
        memmove(comm->streams, comm->streams + 1,
                (size_t)--comm->nstreams * sizeof *comm->streams);
    comm->streams[comm->nstreams++] = stream;
}

void comms_stream_gone(cudaStream_t stream) {
    for (size_t i = 0; i < comms.size; i++) {
        struct comm *comm = comms.at[i].value;
        for (int s = 0; comm && s < comm->nstreams; s++)
            if (comm->streams[s] == stream)
                comm->streams[s--] = comm->streams[--comm->nstreams];
    }
}

/* "All uncompleted operations … will be flushed"; where the communicator blocks, so does
 * the call (NCCL User Guide, "Finalizing a communicator"). So it waits for them first,
 * and then for the other ranks. Returns its number; -1: it does not block, or is not
 * known. */
static int completes(ncclComm_t handle, struct judge_at at) {
    struct comm like = {.number = -1};
    struct judge *j = front_in();
    const struct comm *comm = known(handle);
    if (comm && comm->state == THERE && !comm->slow && group.depth == 0)
        like = *comm;
    if (like.number >= 0 && !judge_comm_unfinished(j, like.number))
        like.nstreams = 0;
    front_out();
    for (int i = 0; i < like.nstreams; i++)
        if (!stream_capturing(like.streams[i]))
            stream_waited_for(like.streams[i], at);
    return like.number;
}

/* With a communicator that does not block, ncclCommFinalize only begins: the program asks
 * whether it is done before it destroys it (NCCL's manual, ncclCommFinalize). */
static bool is_ending(ncclComm_t handle) {
    front_in();
    bool ending = known(handle) && known(handle)->ending;
    front_out();
    return ending;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    ENTER_COMM(ncclCommFinalize, comm);
    completes(comm, at);
    bool waits = tell_end(comm, JUDGE_FINALIZED, true, at);
    ncclResult_t result = MEETS(id_of(comm), CALL(PNCCL(ncclCommFinalize), comm));
    struct judge *j = front_in();
    struct comm *ended = known(comm);
    if (ended && result == ncclInProgress)
        ended->ending = true;
    else if (ended && result == ncclSuccess)
        judge_comm_complete(j, ended->number);
    front_out();
    return waits ? wait_ends(result, at) : answer_nccl(result, at);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    ENTER_COMM(ncclCommDestroy, comm);
    if (is_ending(comm)) { // it may be refused, and is there then
        ncclResult_t early = CALL(PNCCL(ncclCommDestroy), comm);
        if (early == ncclSuccess)
            tell_end(comm, JUDGE_DESTROYED, false, at);
        return answer_nccl(early, at);
    }
    int number = completes(comm, at);
    bool waits = tell_end(comm, JUDGE_DESTROYED, group.depth == 0, at);
    ncclResult_t result = MEETS(id_of(comm), CALL(PNCCL(ncclCommDestroy), comm));
    if (number >= 0 && result == ncclSuccess) {
        judge_comm_complete(front_in(), number);
        front_out();
    }
    return waits ? wait_ends(result, at) : answer_nccl(result, at);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    ENTER_COMM(ncclCommAbort, comm);
    tell_end(comm, JUDGE_ABORTED, false, at);
    return answer_nccl(CALL(PNCCL(ncclCommAbort), comm), at);
}

#ifdef NCCL_REVOKE_DEFAULT
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
    ENTER_COMM(ncclCommRevoke, comm, flags);
    tell_end(comm, JUDGE_REVOKED, false, at);
    return answer_nccl(CALL(PNCCL(ncclCommRevoke), comm, flags), at);
}
#endif

/* --- Asking them ---------------------------------------------------------------- */

/* Whether a communicator is there that is still on the way. A split's ranks are not
 * known before. */
static void asks_for(struct judge *j, const struct comm *coming, ncclResult_t state,
                     struct judge_at at) {
    const struct judge_join join = {.id = coming->id,
                                    .rank = coming->rank,
                                    .nranks = coming->nranks,
                                    .device = coming->device,
                                    .at = coming->at};
    if (state == ncclInProgress && coming->rank >= 0)
        judge_poll_join(j, &join, at);
    else if (state != ncclInProgress)
        judge_wait_end(j, state == ncclSuccess);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
    ncclComm_t comm = handle;
    ENTER_COMM(ncclCommGetAsyncError, comm, error);
    struct comm like = {.state = GONE};
    ncclResult_t result = CALL(PNCCL(ncclCommGetAsyncError), comm, error);
    if (result != ncclSuccess || !error)
        return answer_nccl(result, at);
    have_come(*error == ncclSuccess);
    struct judge *j = front_in();
    heard_ready += *error == ncclSuccess;
    struct comm *asked = known(comm);
    if (asked && asked->ending && *error == ncclSuccess)
        judge_comm_complete(j, asked->number);
    if (asked && *error != ncclInProgress)
        asked->ending = false;
    if (asked && asked->state == COMING) {
        like = *asked;
        asks_for(j, &like, *error, at);
    } else if (asked)
        judge_poll_comm(j, asked->number, *error != ncclInProgress, at);
    front_out();
    if (like.state == COMING && *error == ncclSuccess)
        comm_is_there(comm, like);
    if (timeline_on && *error == ncclSuccess)
        timeline_comm_ready(id_of(comm));
    return result;
}

#define ASKS(name, type)                                      \
    ncclResult_t name(const ncclComm_t comm, type out) {      \
        ENTER_COMM(name, comm, out);                          \
        return answer_nccl(CALL(PNCCL(name), comm, out), at); \
    }
ASKS(ncclCommCount, int *)
ASKS(ncclCommCuDevice, int *)
ASKS(ncclCommUserRank, int *)

/* --- Memory --------------------------------------------------------------------- */

#if NCCL_VERSION_CODE >= 21900
ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
    ENTER_NCCL(ncclMemAlloc, pointer, bytes);
    ncclResult_t result = CALL(PNCCL(ncclMemAlloc), pointer, bytes);
    if (result != ncclSuccess)
        return answer_nccl(result, at);
    int device = current_device();
    judge_memory_made(front_in(), *pointer, bytes, JUDGE_DEVICE, device, -1, at);
    nccl_memory_made(*pointer);
    front_out();
    return result;
}

ncclResult_t ncclMemFree(void *pointer) {
    ENTER_NCCL(ncclMemFree, pointer);
    struct judge_memory memory;
    struct judge *j = front_in();
    if (nccl_memory_is(pointer) && judge_memory_find(j, pointer, &memory) &&
        memory.start == pointer) {
        registered_freed(j, pointer, at);
        judge_memory_freed(j, pointer, -1, at);
        nccl_memory_gone(pointer);
    }
    front_out();
    return answer_nccl(CALL(PNCCL(ncclMemFree), pointer), at);
}

/* In a group, or where nobody waits for it, the handle is not there yet. */
static void registration_made(ncclComm_t comm, void *handle, const void *buffer,
                              size_t bytes, bool symmetric, ncclResult_t result,
                              struct judge_at at) {
    void *made = NULL;
    if (failed(result))
        return;
    if (result == ncclSuccess && group.depth == 0 && handle)
        memcpy(&made, handle, sizeof made);
    front_in();
    if (made)
        registered_add(comm, made, buffer, bytes, symmetric, at);
    else
        registered_unknown(comm);
    front_out();
}

static void registration_ends(ncclComm_t comm, const void *handle) {
    front_in();
    if (handle)
        registered_gone(comm, handle);
    front_out();
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle) {
    ENTER_COMM(ncclCommRegister, comm, buffer, bytes, handle);
    ncclResult_t result = CALL(PNCCL(ncclCommRegister), comm, buffer, bytes, handle);
    registration_made(comm, handle, buffer, bytes, false, result, at);
    return answer_nccl(result, at);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    ENTER_COMM(ncclCommDeregister, comm, handle);
    registration_ends(comm, handle);
    return answer_nccl(CALL(PNCCL(ncclCommDeregister), comm, handle), at);
}
#endif

#ifdef NCCL_WIN_DEFAULT
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
    ENTER_COMM(ncclCommWindowRegister, comm, buffer, bytes, window, flags);
    enters(comm, at);
    bool waits =
        tell_together(comm, JUDGE_REGISTER, 0, NULL, bytes, at) && group.depth == 0;
    ncclResult_t result =
        CALL(PNCCL(ncclCommWindowRegister), comm, buffer, bytes, window, flags);
    leaves();
    registration_made(comm, window, buffer, bytes, flags & NCCL_WIN_COLL_SYMMETRIC,
                      result, at);
    return waits ? wait_ends(result, at) : answer_nccl(result, at);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    ENTER_COMM(ncclCommWindowDeregister, comm, window);
    registration_ends(comm, window);
    return answer_nccl(CALL(PNCCL(ncclCommWindowDeregister), comm, window), at);
}
#endif

/* --- Groups --------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void) {
    ENTER_NCCL(ncclGroupStart);
    ncclResult_t result = CALL(PNCCL(ncclGroupStart));
    if (result != ncclSuccess)
        return answer_nccl(result, at);
    group.depth++;
    judge_group_starts(front_in(), at);
    front_out();
    return result;
}

/* Of every communicator that the group makes, it makes all ranks. */
static bool makes_all(void) {
    for (const struct made *one = group.makes; one; one = one->next) {
        int n = 0;
        for (const struct made *other = group.makes; other; other = other->next)
            n += !other->parent && other->like.id == one->like.id;
        if (!one->parent && n < one->like.nranks)
            return false;
    }
    return true;
}

/* Told before. True: it is the outermost, and waits. */
static bool group_ends(struct judge_at at) {
    if (group.depth == 0)
        return false; // an error, which NCCL will name
    if (group.depth == 1 && group.makes)
        start_communicates(makes_all());
    struct judge *j = front_in();
    judge_group_ends(j, at);
    bool outermost = --group.depth == 0;
    if (outermost)
        judge_wait_launch(j, at);
    front_out();
    return outermost;
}

ncclResult_t ncclGroupEnd(void) {
    ENTER_NCCL(ncclGroupEnd);
    bool outermost = group_ends(at);
    if (outermost && timeline_on)
        timeline_group_begins(at);
    ncclResult_t result = CALL(PNCCL(ncclGroupEnd));
    if (outermost && timeline_on)
        timeline_group_ends(failed(result), result == ncclInProgress);
    if (!outermost)
        return answer_nccl(result, at);
    if (failed(result) && group.makes)
        talk_settles();
    call_has_returned(result);
    makes_end(result);
    return answer_nccl(result, at);
}

#ifdef NCCL_SIM_INFO_INITIALIZER
/* The group ends, and nothing of it happens: as if it had failed, only that nobody need
 * look. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
    ENTER_NCCL(ncclGroupSimulateEnd, info);
    bool outermost = group_ends(at);
    ncclResult_t result = CALL(PNCCL(ncclGroupSimulateEnd), info);
    if (outermost && timeline_on)
        timeline_group_begins(at), timeline_group_ends(1, false);
    if (!outermost)
        return answer_nccl(result, at);
    struct judge *j = front_in();
    judge_wait_end(j, true);
    judge_failed(j, false, "only simulated", at);
    judge_looked(j);
    front_out();
    makes_end(ncclInvalidUsage);
    return result;
}
#endif

/* --- Reductions of the program's own -------------------------------------------- */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
    ENTER_COMM(ncclRedOpCreatePreMulSum, op, scalar, type, residence, comm);
    ncclResult_t result =
        CALL(PNCCL(ncclRedOpCreatePreMulSum), op, scalar, type, residence, comm);
    if (result != ncclSuccess)
        return answer_nccl(result, at);
    struct redop *redop = front_alloc(sizeof *redop);
    front_in();
    struct comm *owner = known(comm);
    if (owner) {
        *redop = (struct redop){owner->redops, *op,
                                residence == ncclScalarDevice ? scalar : NULL};
        owner->redops = redop;
    } else {
        free(redop);
    }
    front_out();
    return result;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    ENTER_COMM(ncclRedOpDestroy, op, comm);
    front_in();
    struct comm *owner = known(comm);
    for (struct redop **at_redop = owner ? &owner->redops : NULL;
         at_redop && *at_redop;) {
        struct redop *redop = *at_redop;
        if (redop->op != op) {
            at_redop = &redop->next;
            continue;
        }
        *at_redop = redop->next;
        free(redop);
    }
    front_out();
    return answer_nccl(CALL(PNCCL(ncclRedOpDestroy), op, comm), at);
}

/* --- Collectives and point to point --------------------------------------------- */

enum { NO_ROOT = -1 };

static size_t size_of(ncclDataType_t type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (int)type >= 0 && (size_t)type < sizeof sizes / sizeof *sizes ? sizes[type]
                                                                         : 0;
}

static bool find_redop(const struct comm *comm, ncclRedOp_t op, struct judge_call *call) {
    call->redop = (int)op;
    if ((int)op < ncclNumOps)
        return (int)op >= 0;
    for (const struct redop *redop = comm->redops; redop; redop = redop->next)
        if (redop->op == op) {
            call->redop = JUDGE_PRE_MUL_SUM;
            call->scalar = redop->scalar;
            return true;
        }
    return false;
}

/* Memory that was made by unknown means is as good as any: only what CUDA does not know,
 * either, is the host's own, or was freed. */
static bool unknown(struct judge *j, const void *buffer) {
    struct judge_memory memory;
    return !OVER_STANDIN && buffer && !judge_memory_find(j, buffer, &memory);
}

static bool is_nowhere(const void *buffer) {
    struct cudaPointerAttributes attributes;
    int device = current_device(), uses_the_hosts = 0;
    if (CALL(BELOW(cudaPointerGetAttributes), &attributes, buffer) != cudaSuccess ||
        attributes.type != cudaMemoryTypeUnregistered)
        return false;
#if !OVER_STANDIN
    CALL(BELOW(cudaDeviceGetAttribute), &uses_the_hosts, cudaDevAttrPageableMemoryAccess,
         device);
#endif
    (void)device;
    return !uses_the_hosts;
}

enum told { NOT_TOLD, TOLD, TOLD_WRONG, USED_AFTER };

static void note_call(const struct judge_call *call, const struct comm *comm,
                      bool reduces, cudaStream_t stream, int device) {
    bool pair = call->kind == JUDGE_SEND || call->kind == JUDGE_RECV;
    const struct timeline_op op = {.name = call->at.call,
                                   .at = call->at,
                                   .collective = !pair,
                                   .bytes = call->count * call->type_bytes,
                                   .count = call->count,
                                   .number = comm->number + 1,
                                   .rank = comm->rank,
                                   .type = call->type,
                                   .redop = reduces ? call->redop : -1,
                                   .root = pair ? -1 : call->root,
                                   .peer = pair ? call->root : -1,
                                   .comm = comm->id};
    timeline_adds(&op, stream, device);
    if (group.depth == 0)
        timeline_group_begins(call->at);
}

/* What NCCL will refuse anyway (a root that is none, an unknown type) is not told. */
static enum told tell_call(enum judge_kind kind, const void *sendbuff, void *recvbuff,
                           size_t count, ncclDataType_t type, const ncclRedOp_t *op,
                           int root, ncclComm_t handle, cudaStream_t stream,
                           struct judge_at at) {
    struct judge_call call = {.kind = kind,
                              .type = (int)type,
                              .root = root,
                              .count = count,
                              .type_bytes = size_of(type),
                              .sendbuff = sendbuff,
                              .recvbuff = recvbuff,
                              .at = at};
    int device = 0;
    have_come(false);
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
        front_in(); // the default stream is that of the communicator's device
        device = known(handle) ? known(handle)->device : 0;
        front_out();
    }
    struct judge *j = front_in_stream(stream, device, &call.stream);
    struct comm *comm = known(handle);
    if (comm && comm->state == COMING) {
        front_out();
        front_in_comm(handle, &comm, at);
        front_out();
        j = front_in_stream(stream, device, &call.stream);
        comm = known(handle);
    }
    bool ask_send = unknown(j, sendbuff), ask_recv = unknown(j, recvbuff);
    if (ask_send || ask_recv) {
        front_out();
        call.send_nowhere = ask_send && is_nowhere(sendbuff);
        call.recv_nowhere = ask_recv && is_nowhere(recvbuff);
        j = front_in_stream(stream, device, &call.stream);
        comm = known(handle);
    }
    enum told told = NOT_TOLD;
    struct comm note = {.state = GONE};
    if (comm && comm->state == GONE) {
        judge_comm_used_after(j, comm->number, at);
        told = front_checks ? USED_AFTER : NOT_TOLD;
    } else if (comm && comm->state == THERE && call.stream >= 0 && call.type_bytes > 0 &&
               root >= NO_ROOT && root < comm->nranks &&
               (!op || find_redop(comm, *op, &call))) {
        call.comm = comm->number;
        registered_place(handle, comm->rank, &call);
        told = judge_call(j, &call) && front_checks ? TOLD_WRONG : TOLD;
        is_on(comm, stream);
        note = *comm;
        if (group.depth == 0)
            judge_wait_launch(j, at);
    } else {
        judge_not_told(j);
    }
    front_out();
    if (timeline_on && told == TOLD)
        note_call(&call, &note, op != NULL, stream, device);
    return told;
}

static ncclResult_t call_made(enum told told, ncclResult_t result, struct judge_at at) {
    if (timeline_on && told == TOLD) {
        if (group.depth == 0)
            timeline_group_ends(failed(result), result == ncclInProgress);
        else if (failed(result))
            timeline_adds_not();
    }
    return told == TOLD && group.depth == 0 ? wait_ends(result, at)
                                            : answer_nccl(result, at);
}

/* A call whose buffers are wrong is not made: it has been named, and would end in a
 * crash. */
static ncclResult_t refuse(struct judge_at at) {
    struct judge *j = front_in();
    if (group.depth == 0)
        judge_wait_end(j, false);
    judge_failed(j, false, "its buffers are wrong", at);
    front_out();
    return ncclInvalidArgument;
}

#define COLLECTIVE(name, kind, sendbuff, recvbuff, op, root, parameters, ...)       \
    ncclResult_t name parameters {                                                  \
        ENTER_NCCL(name, __VA_ARGS__);                                              \
        if (!sees_cuda(true))                                                       \
            return PNCCL(name)(__VA_ARGS__);                                        \
        enters(comm, at);                                                           \
        enum told told = tell_call(kind, sendbuff, recvbuff, count, type, op, root, \
                                   comm, stream, at);                               \
        ncclResult_t result = ncclInvalidArgument;                                  \
        if (told == TOLD_WRONG)                                                     \
            result = refuse(at);                                                    \
        else if (told != USED_AFTER)                                                \
            result = call_made(told, CALL(PNCCL(name), __VA_ARGS__), at);           \
        leaves();                                                                   \
        return result;                                                              \
    }

COLLECTIVE(ncclBroadcast, JUDGE_BROADCAST, send, recv, NULL, root,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, root, comm, stream)
COLLECTIVE(ncclBcast, JUDGE_BROADCAST, buffer, buffer, NULL, root,
           (void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
            cudaStream_t stream),
           buffer, count, type, root, comm, stream)
COLLECTIVE(ncclAllReduce, JUDGE_ALL_REDUCE, send, recv, &op, NO_ROOT,
           (const void *send, void *recv, size_t count, ncclDataType_t type,
            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, op, comm, stream)
COLLECTIVE(ncclReduce, JUDGE_REDUCE, send, recv, &op, root,
           (const void *send, void *recv, size_t count, ncclDataType_t type,
            ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, op, root, comm, stream)
COLLECTIVE(ncclReduceScatter, JUDGE_REDUCE_SCATTER, send, recv, &op, NO_ROOT,
           (const void *send, void *recv, size_t count, ncclDataType_t type,
            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, op, comm, stream)
COLLECTIVE(ncclAllGather, JUDGE_ALL_GATHER, send, recv, NULL, NO_ROOT,
           (const void *send, void *recv, size_t count, ncclDataType_t type,
            ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, comm, stream)
COLLECTIVE(ncclSend, JUDGE_SEND, send, NULL, NULL, peer,
           (const void *send, size_t count, ncclDataType_t type, int peer,
            ncclComm_t comm, cudaStream_t stream),
           send, count, type, peer, comm, stream)
COLLECTIVE(ncclRecv, JUDGE_RECV, NULL, recv, NULL, peer,
           (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
            cudaStream_t stream),
           recv, count, type, peer, comm, stream)
#if NCCL_VERSION_CODE >= 22800
COLLECTIVE(ncclAlltoAll, JUDGE_ALL_TO_ALL, send, recv, NULL, NO_ROOT,
           (const void *send, void *recv, size_t count, ncclDataType_t type,
            ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, comm, stream)
COLLECTIVE(ncclGather, JUDGE_GATHER, send, recv, NULL, root,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, root, comm, stream)
COLLECTIVE(ncclScatter, JUDGE_SCATTER, send, recv, NULL, root,
           (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
            ncclComm_t comm, cudaStream_t stream),
           send, recv, count, type, root, comm, stream)
#endif
