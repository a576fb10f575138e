/*
 * nccl_device.c: what kernels get of NCCL's: windows and device communicators. A kernel
 * that is queued with one uses it as if it were memory (JUDGE_HANDLE). What it does with
 * the memory of other ranks is not known.
 *
 * NCCL User Guide, "Device-Initiated Communication".
 */
#include "nccl_front.h"

#if OVER_STANDIN
void front_handle_made(struct judge *j, const void *handle, struct judge_at at) {
    judge_memory_made(j, standin_handle(handle), 1, JUDGE_HANDLE, 0, -1, at);
    judge_memory_open(j, standin_handle(handle));
}

struct judge_at front_handle_ends(const void *handle, struct judge_at at) {
    struct judge_memory memory = {0};
    struct judge *j = front_in();
    if (judge_memory_find(j, standin_handle(handle), &memory))
        judge_memory_freed(j, standin_handle(handle), -1, at);
    front_out();
    return memory.made;
}
#else // kernels are not seen
void front_handle_made(struct judge *j, const void *handle, struct judge_at at) {
    (void)j, (void)handle, (void)at;
}

struct judge_at front_handle_ends(const void *handle, struct judge_at at) {
    (void)handle, (void)at;
    return (struct judge_at){0};
}
#endif

#if NCCL_VERSION_CODE >= 22800
/* nccl_device.h is for C++. */
PUBLIC ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
                                      void *made);
PUBLIC ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made);

static const void *handle_of(const void *device_comm) {
#if OVER_STANDIN
    return device_comm ? STANDIN(device_comm)(device_comm) : NULL;
#else
    return device_comm;
#endif
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements, void *made) {
    ENTER_COMM(ncclDevCommCreate, comm, requirements, made);
    comm_entered(comm, at);
    bool waits =
        comm_together(comm, JUDGE_DEVICE_COMM, 0, NULL, 0, at) && nccl_group.depth == 0;
    ncclResult_t result = CALL(PNCCL(ncclDevCommCreate), comm, requirements, made);
    comm_left();
    if (!nccl_failed(result))
        TELL(front_handle_made, handle_of(made), at);
    return waits ? nccl_waited(result, at) : nccl_answer(result, at);
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made) {
    ENTER_COMM(ncclDevCommDestroy, comm, made);
    const void *handle = handle_of(made);
    const struct judge_at from = front_handle_ends(handle, at);
    ncclResult_t result = CALL(PNCCL(ncclDevCommDestroy), comm, made);
    if (nccl_failed(result) && from.call)
        TELL(front_handle_made, handle, from);
    return nccl_answer(result, at);
}
#endif
