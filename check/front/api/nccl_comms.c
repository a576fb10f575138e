/*
 * nccl_comms.c: the communicators of NCCL that the program has, and how a call on one
 * begins and ends.
 *
 * A call is told before it is made, since the others may wait for it and it for them; one
 * that fails is taken back. A communicator is known from the moment it is there: after
 * the call that makes it, after ncclGroupEnd, or, where it does not block, when
 * ncclCommGetAsyncError says so. One that was given up stays known, so that using it can
 * be named instead of reading freed memory. NCCL User Guide, "Creating a Communicator",
 * "Group Calls", "Fault Tolerance".
 */
#include "nccl_comms.h"

#include "strangers.h"

#include "nccl_front.h"
#include "nccl_registered.h"
#include "talk.h"

static struct map comms;
unsigned comm_times_ready;
__thread struct nccl_group nccl_group;

bool group_is_open(void) {
    return nccl_group.depth > 0;
}

struct comm *comm_known(ncclComm_t handle) {
    return table_get(&comms, handle);
}

struct comm comm_now(ncclComm_t handle) {
    front_in();
    struct comm *comm = comm_known(handle), now = {.state = NOT_KNOWN};
    now = comm ? *comm : now;
    front_out();
    return now;
}

const struct comm *comm_announce(struct judge *j, ncclComm_t handle,
                                 const struct comm *like) {
    struct comm *comm = comm_known(handle);
    if (!comm)
        table_put(&comms, handle, comm = must_alloc(sizeof *comm));
    *comm = *like;
    if (comm->state == THERE)
        comm->number = judge_comm_made(j, comm->id, comm->rank, comm->nranks,
                                       comm->device, !comm->slow, comm->at);
    return comm;
}

bool comm_is_ready(ncclComm_t handle) {
    ncclResult_t state = ncclSuccess;
    return CALL(PNCCL(ncclCommGetAsyncError), handle, &state) == ncclSuccess &&
           state == ncclSuccess;
}

/* It is another one's now, of which nothing is known. */
static void forget(ncclComm_t handle) {
    front_in();
    struct comm *comm = comm_known(handle);
    table_put(&comms, handle, NULL);
    free(comm);
    front_out();
}

/* The ranks of one that has grown have no number in common over the real NCCL: nothing
 * is said of it any more. */
void comm_is_there(ncclComm_t handle, struct comm like) {
    if (!OVER_STANDIN)
        strangers_of_libraries();
    if (!like.id && !OVER_STANDIN) {
        forget(handle);
        return;
    }
    like.state = THERE;
    like.join.nranks = 0;
    like.id = like.id ? like.id : STANDIN(comm_id)(handle); // it has grown
    // Of one that was split off it is not known yet.
    if (like.rank < 0) {
        CALL(PNCCL(ncclCommUserRank), handle, &like.rank);
        CALL(PNCCL(ncclCommCount), handle, &like.nranks);
        CALL(PNCCL(ncclCommCuDevice), handle, &like.device);
    }
    TELL(comm_announce, handle, &like);
}

void comm_look_again(ncclComm_t handle) {
    const struct comm like = comm_now(handle);
    if (like.state == COMING && comm_is_ready(handle))
        comm_is_there(handle, like);
}

static struct newcomm *promised; // handles that NCCL has not written yet

void newcomm_promised(const struct newcomm *newcomm) {
    struct newcomm *mine = must_alloc(sizeof *mine);
    front_in();
    *mine = *newcomm;
    mine->like.state = COMING;
    mine->like.slow = true;
    mine->like.times_ready = comm_times_ready;
    mine->next = promised;
    promised = mine;
    struct comm *parent = comm_known(newcomm->parent);
    if (parent)
        parent->join = mine->like.join;
    front_out();
}

void comm_take_promised(bool asked) {
    while (promised) {
        struct judge *j = front_in();
        struct newcomm **at = &promised, *one;
        while (*at && !*(*at)->out)
            at = &(*at)->next;
        if ((one = *at)) {
            *at = one->next;
            comm_announce(j, *one->out, &one->like);
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
void comm_gone(const void *handle, struct comm *comm) {
    comm->state = GONE;
    comm->ending = false;
    registered_gone(handle, NULL);
    for (struct newcomm **at = &promised, *one; (one = *at);)
        if (one->parent == handle) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
}

struct judge *comm_in(ncclComm_t handle, struct comm **comm, struct judge_at at) {
    comm_take_promised(false);
    struct judge *j = front_in();
    *comm = comm_known(handle);
    if (!*comm || (*comm)->state != COMING)
        return j;
    front_out();
    comm_look_again(handle);
    j = front_in();
    *comm = comm_known(handle);
    if (*comm && !(*comm)->failed &&
        ((*comm)->state == COMING || (*comm)->times_ready == comm_times_ready))
        judge_found(j, JUDGE_NOT_READY, -1, (*comm)->at, at);
    return j;
}

/* What NCCL had on the device is gone: "it is the caller's responsibility to ensure that
 * the resources are not accessed or passed in subsequent API calls" (CUDA Runtime API,
 * cudaDeviceReset). */
void comms_reset(struct judge *j, int device, struct judge_at at) {
    for (size_t i = 0; i < comms.size; i++) {
        struct comm *comm = comms.at[i].value;
        if (!comm || comm->state != THERE || comm->device != device)
            continue;
        judge_comm_ends(j, comm->number, JUDGE_RESET, at);
        comm_gone(table_handle(&comms, i), comm);
    }
}

void comms_stream_gone(cudaStream_t stream) {
    for (size_t i = 0; i < comms.size; i++) {
        struct comm *comm = comms.at[i].value;
        for (int s = 0; comm && s < comm->nstreams; s++)
            if (comm->streams[s] == stream)
                comm->streams[s--] = comm->streams[--comm->nstreams];
    }
}

static const char *code_of(ncclResult_t result) {
    static const char *const names[] = {"ncclSuccess",         "ncclUnhandledCudaError",
                                        "ncclSystemError",     "ncclInternalError",
                                        "ncclInvalidArgument", "ncclInvalidUsage",
                                        "ncclRemoteError",     "ncclInProgress"};
    const bool known = result >= 0 && (size_t)result < sizeof names / sizeof *names;
    return front_code(known ? names[result] : "error", (int)result);
}

ncclResult_t nccl_answer(ncclResult_t result, struct judge_at at) {
    char text[256];
    if (!nccl_failed(result))
        return result;
    const char *last = CALL(PNCCL(ncclGetLastError), NULL);
    snprintf(text, sizeof text, "%s",
             last && last[0] ? last : CALL(PNCCL(ncclGetErrorString), result));
    text[strcspn(text, "\n")] = '\0';
    const bool again = nccl_group.failed && nccl_group.depth == 0;
    nccl_group.failed = nccl_group.depth > 0;
    front_failed(false, again ? NULL : code_of(result), text, at);
    return result;
}

void nccl_returned(ncclResult_t result) {
    struct judge *j = front_in();
    judge_call_answered(j, result == ncclInProgress);
    judge_wait_end(j, result == ncclSuccess);
    front_out();
}

ncclResult_t nccl_waited(ncclResult_t result, struct judge_at at) {
    nccl_returned(result);
    return nccl_answer(result, at);
}

bool nccl_sees_cuda(bool used) {
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

void nccl_may_be_hidden(void) {
    static bool looked;
    if (looked || !python_there())
        return;
    looked = true;
    if (!PNCCL(ncclAllReduce) && front_find("_ZTIN4c10d16ProcessGroupNCCLE"))
        talk_gives_up("NCCL is linked statically into PyTorch: build that with"
                      " USE_SYSTEM_NCCL=1");
}

ncclResult_t nccl_lacks(const char *name) {
    fprintf(stderr, "NCCL CHECK: this NCCL is older than %s, and has no such function\n",
            name);
    return ncclInvalidUsage;
}

bool comm_is_given_up(ncclComm_t handle, struct judge_at at) {
    const struct comm comm = comm_now(handle);
    if (comm.state != GONE || !front_checks)
        return false;
    TELL(judge_comm_used_after, comm.number, at);
    return true;
}

/* Which threads are in a call on which communicator, from its first moment on: before the
 * judge's lock, for which a second thread would wait until the first has left. Of
 * communicators that share a place only one is looked at. */
enum { PLACES = 64 };
static struct call_place {
    int thread; // 0: nobody's
    ncclComm_t comm;
    struct judge_at at;
} in_call[PLACES];
static __thread struct call_place *mine;

void comm_entered(ncclComm_t handle, struct judge_at at) {
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
    const struct comm *comm = comm_known(handle);
    if (comm && comm->state == THERE)
        judge_found(j, JUDGE_TWO_THREADS, comm->number, other, at);
    front_out();
}

void comm_left(void) {
    if (!mine)
        return;
    __atomic_store_n(&mine->comm, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&mine->thread, 0, __ATOMIC_RELEASE);
    mine = NULL;
}

const char *ncclGetErrorString(ncclResult_t result) {
    PASS_NCCL(ncclGetErrorString, result);
    TELL(judge_looked);
    return CALL(PNCCL(ncclGetErrorString), result);
}

const char *ncclGetLastError(ncclComm_t comm) {
    PASS_NCCL(ncclGetLastError, comm);
    TELL(judge_looked);
    return CALL(PNCCL(ncclGetLastError), comm_now(comm).state == GONE ? NULL : comm);
}
