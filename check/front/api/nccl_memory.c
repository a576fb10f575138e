/*
 * nccl_memory.c: NCCL's memory, and buffers that are registered with communicators.
 */
#include "nccl_front.h"
#include "mpi_waits.h"
#include "nccl_registered.h"

#include <stdlib.h>

#if NCCL_VERSION_CODE >= 21900
ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
    ENTER_NCCL(ncclMemAlloc, pointer, bytes);
    ncclResult_t result = CALL(PNCCL(ncclMemAlloc), pointer, bytes);
    if (result != ncclSuccess)
        return nccl_answer(result, at);
    int device = current_device();
    TELL(judge_memory_made, *pointer, bytes, JUDGE_NCCL_MEMORY, device, -1, at);
    return result;
}

ncclResult_t ncclMemFree(void *pointer) {
    ENTER_NCCL(ncclMemFree, pointer);
    struct judge_memory memory;
    struct judge *j = front_in();
    if (judge_memory_find(j, pointer, &memory) && memory.start == pointer &&
        memory.kind == JUDGE_NCCL_MEMORY) {
        registered_freed(j, pointer, at);
        judge_memory_freed(j, pointer, -1, at);
    }
    front_out();
    return nccl_answer(CALL(PNCCL(ncclMemFree), pointer), at);
}

/* In a group, or where nobody waits for it, the handle is not there yet. */
static void registration_made(ncclComm_t comm, void *handle, const void *buffer,
                              size_t bytes, bool symmetric, ncclResult_t result,
                              struct judge_at at) {
    void *made = NULL;
    if (nccl_failed(result))
        return;
    if (result == ncclSuccess && nccl_group.depth == 0 && handle)
        memcpy(&made, handle, sizeof made);
    struct judge *j = front_in();
    const struct comm *of = comm_known(comm);
    if (made && symmetric)
        front_handle_made(j, made, at);
    if (made)
        registered_add(comm, made, buffer, bytes, symmetric,
                       symmetric && of
                           ? judge_window_made(j, of->number, buffer, bytes, mpi_more > 0)
                           : 0,
                       at);
    front_out();
}

static struct registration *take_registration(ncclComm_t comm, const void *handle) {
    front_in();
    struct registration *taken = registered_take(comm, handle);
    front_out();
    return taken;
}

/* Taken before the call, since the handle may come again as soon as it is given up; put
 * back if NCCL has refused it: each kind of handle has a call of its own. */
static void registration_ends(ncclComm_t comm, struct registration *taken, bool refused,
                              struct judge_at at) {
    struct judge *j = front_in();
    const struct comm *of = comm_known(comm);
    if (refused)
        registered_back(taken);
    else if (taken && registered_number(taken) && of && of->state == THERE)
        judge_window_gone(j, of->number, registered_number(taken), at);
    if (!refused)
        free(taken);
    front_out();
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes,
                              void **handle) {
    ENTER_COMM(ncclCommRegister, comm, buffer, bytes, handle);
    struct comm *used;
    judge_registers(comm_in(comm, &used, at), buffer, bytes, at);
    front_out();
    ncclResult_t result = CALL(PNCCL(ncclCommRegister), comm, buffer, bytes, handle);
    registration_made(comm, handle, buffer, bytes, false, result, at);
    return nccl_answer(result, at);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    ENTER_COMM(ncclCommDeregister, comm, handle);
    struct registration *taken = take_registration(comm, handle);
    ncclResult_t result = CALL(PNCCL(ncclCommDeregister), comm, handle);
    registration_ends(comm, taken, nccl_failed(result), at);
    return nccl_answer(result, at);
}
#endif

#ifdef NCCL_WIN_DEFAULT
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes,
                                    ncclWindow_t *window, int flags) {
    ENTER_COMM(ncclCommWindowRegister, comm, buffer, bytes, window, flags);
    comm_entered(comm, at);
    TELL(judge_registers, buffer, bytes, at);
    bool waits =
        comm_together(comm, JUDGE_REGISTER, 0, NULL, bytes, at) && nccl_group.depth == 0;
    ncclResult_t result =
        CALL(PNCCL(ncclCommWindowRegister), comm, buffer, bytes, window, flags);
    comm_left();
    registration_made(comm, window, buffer, bytes, flags & NCCL_WIN_COLL_SYMMETRIC,
                      result, at);
    return waits ? nccl_waited(result, at) : nccl_answer(result, at);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
    ENTER_COMM(ncclCommWindowDeregister, comm, window);
    struct registration *taken = take_registration(comm, window);
    const struct judge_at made = front_handle_ends(window, at);
    ncclResult_t result = CALL(PNCCL(ncclCommWindowDeregister), comm, window);
    if (nccl_failed(result) && made.call)
        TELL(front_handle_made, window, made);
    registration_ends(comm, taken, nccl_failed(result), at);
    return nccl_answer(result, at);
}
#endif
