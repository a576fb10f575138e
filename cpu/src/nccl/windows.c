/*
 * windows.c has NCCL's memory, and the buffers and windows that are registered.
 * NCCL User Guide, "User Buffer Registration", "Window Registration".
 */
#include "nccl/calls.h"
#include "nccl/agreement.h"

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
    NCCL_CALL;
    if (!pointer || bytes == 0)
        return nccl_error(ncclInvalidArgument, "ncclMemAlloc: %s",
                          pointer ? "size is 0" : "ptr is NULL");
    cudaError_t error = device_allocate(pointer, bytes, MEMORY_DEVICE);
    if (error != cudaSuccess)
        return nccl_error(ncclUnhandledCudaError, "ncclMemAlloc: %s",
                          cudaGetErrorString(error));
    struct memory *memory = memory_find(*pointer);
    memory->closed = memory->of_nccl = true;
    return ncclSuccess;
}

/* As on two H200 (NCCL 2.28): what is not its own it leaves, and cudaFree likewise. */
ncclResult_t ncclMemFree(void *pointer) {
    NCCL_CALL;
    struct memory *memory = memory_find(pointer);
    if (pointer && (!memory || memory->user != pointer || !memory->of_nccl))
        return nccl_error(ncclUnhandledCudaError, "ncclMemFree: Cuda failure 1 '%s'",
                          cudaGetErrorString(cudaErrorInvalidValue));
    if (memory)
        memory->of_nccl = false;
    cudaError_t error = cudaFree(pointer);
    return error == cudaSuccess ? ncclSuccess
                                : nccl_error(ncclUnhandledCudaError, "ncclMemFree: %s",
                                             cudaGetErrorString(error));
}

/* --- Registered -------------------------------------------------------------------- */

static ncclResult_t check_buffer(const char *name, void *buffer, size_t bytes,
                                 const void *handle) {
    if (!buffer || bytes == 0 || !handle)
        return nccl_error(ncclInvalidArgument, "%s: %s", name,
                          !buffer  ? "buff is NULL"
                          : handle ? "size is 0"
                                   : "no place for the handle");
    if (!memory_find(buffer))
        return nccl_error(ncclInvalidArgument, "%s: buff is not device memory", name);
    return ncclSuccess;
}

static struct registration *enter(struct ncclComm *comm, void *buffer, size_t bytes) {
    struct registration *mine = base_alloc(sizeof *mine);
    mine->buffer = buffer;
    mine->bytes = bytes;
    mine->live = true;
    mine->next = comm->registrations;
    return comm->registrations = mine;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle) {
    NCCL_CALL;
    CHECK_COMM(comm);
    ncclResult_t result = check_buffer(__func__, buffer, bytes, handle);
    if (result == ncclSuccess)
        *handle = enter(comm, buffer, bytes);
    return result;
}

/* A window is no handle of ncclCommRegister, nor the other way round: seen on an H200
 * (NCCL 2.30), where it is ncclInvalidUsage. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!handle)
        return ncclSuccess;
    struct registration *gone = comm_registered(comm, handle, false);
    if (!gone)
        return nccl_error(ncclInvalidUsage,
                          "%s: not a handle of ncclCommRegister of this communicator",
                          __func__);
    struct registration **at = &comm->registrations;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    free(gone);
    return ncclSuccess;
}

/* --- Windows ----------------------------------------------------------------------- */

/* What a rank tells of its part: bytes, flags, and where kernels of other ranks find it.
 */
enum { BYTES, FLAGS, OFFSET, HANDLE };
_Static_assert(sizeof(cudaIpcMemHandle_t) == (CALL_TOLD - HANDLE) * sizeof(int64_t), "");

static void tell_place(const struct registration *mine, int64_t *told) {
    struct memory *memory = memory_find(mine->buffer);
    cudaIpcMemHandle_t handle;
    if (!memory_guarded() || !mine->symmetric || !memory->of_nccl ||
        !ipc_share(memory, &handle))
        return;
    told[OFFSET] = mine->buffer - memory->user;
    memcpy(told + HANDLE, &handle, sizeof handle);
}

static void open_parts(struct registration *one, const struct call *call) {
    const struct ncclComm *comm = call->comm;
    const int n = memory_guarded() && one->symmetric ? comm_reach(comm) : 0;
    one->teammates = n;
    one->parts = base_alloc((size_t)(n + 1) * sizeof *one->parts);
    one->rank = comm->rank;
    one->lsa_rank = n ? comm->rank % n : 0;
    for (int i = 0; i < n; i++) {
        const int64_t *told = agreement_told(call, comm->rank - one->lsa_rank + i);
        const void *handle = told + HANDLE;
        struct memory *part;
        if (i == one->lsa_rank)
            one->parts[i] = one->buffer;
        else if (ipc_open(handle, comm->device, &part) == cudaSuccess)
            one->parts[i] = part->user + told[OFFSET];
    }
}

static void parts_known(struct call *call, struct ncclComm *made) {
    (void)made;
    struct ncclComm *comm = call->comm;
    for (struct registration *one = comm->registrations; one; one = one->next) {
        if (!one->window || one->number != call->window)
            continue;
        one->sizes = base_alloc((size_t)comm->nranks * sizeof *one->sizes);
        for (int r = 0; r < comm->nranks; r++)
            one->sizes[r] = (uint64_t)agreement_told(call, r)[BYTES];
        open_parts(one, call);
    }
}

static ncclResult_t begin_window(struct meeting_call *meets) {
    agreement_begin(meets->call, NULL, parts_known);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
    NCCL_CALL;
    CHECK_COMM(comm);
    enum {
        KNOWN = NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING | NCCL_WIN_GIN_ONLY |
                NCCL_WIN_CFT_COUNTED
    };
    if (flags & ~KNOWN)
        return in_group(
            nccl_error(ncclInvalidArgument, "%s: unknown flags %d", __func__, flags));
    // NCCL 2.30.7 says so on an H100; 2.28.3 takes it, at least for one rank.
    if ((uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
        return in_group(nccl_error(ncclInvalidArgument,
                                   "%s: the address of a window is a multiple of %d"
                                   " (NCCL_WIN_REQUIRED_ALIGNMENT), as ncclMemAlloc"
                                   " gives it",
                                   __func__, NCCL_WIN_REQUIRED_ALIGNMENT));
    ncclResult_t result = check_buffer(__func__, buffer, bytes, window);
    if (result != ncclSuccess)
        return in_group(result);
    struct registration *mine = enter(comm, buffer, bytes);
    mine->window = true;
    mine->symmetric = flags & NCCL_WIN_COLL_SYMMETRIC;
    comm->rma |= mine->symmetric;
    mine->number = ++comm->entered;
    *window = (ncclWindow_t)(void *)mine;
    struct call *call = call_create(comm, CALL_WINDOW);
    call->window = mine->number;
    call->told[BYTES] = (int64_t)bytes;
    call->told[FLAGS] = flags;
    tell_place(mine, call->told);
    return in_group(meet_soon((struct meeting_call){
        .name = __func__, .begin = begin_window, .parent = comm, .call = call}));
}

/* Its codes are those of two H100 (NCCL 2.32.3). */
static ncclResult_t window_of(const char *name, struct ncclComm *comm,
                              ncclWindow_t window, struct registration **known) {
    *known = comm_registered(comm, window, true);
    return *known ? ncclSuccess
                  : nccl_error(ncclInternalError, "%s: not a window of this communicator",
                               name);
}

/* What was registered stays known: other ranks may still put something into it. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!window)
        return ncclSuccess; // as NCCL: nothing to do
    struct registration *gone;
    ncclResult_t result = window_of(__func__, comm, window, &gone);
    if (result == ncclSuccess) {
        gone->live = false;
        comm_close_parts(gone);
    }
    return result;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **pointer) {
    NCCL_CALL;
    CHECK_COMM(comm);
    if (!pointer || !window)
        return nccl_error(ncclInvalidArgument, "%s: %s is NULL", __func__,
                          pointer ? "win" : "outUserPtr");
    struct registration *known;
    ncclResult_t result = window_of(__func__, comm, window, &known);
    if (result == ncclSuccess)
        *pointer = known->buffer;
    return result;
}
