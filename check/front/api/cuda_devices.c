/*
 * cuda_devices.c: devices, and what went wrong last.
 */
#include "cuda_front.h"

#include "nccl_comms.h"
#include "cuda_graphs.h"

cudaError_t cudaGetLastError(void) {
    FRONT_PASS(cudaGetLastError);
    TELL(judge_looked);
    return CALL(BELOW(cudaGetLastError));
}

cudaError_t cudaPeekAtLastError(void) {
    FRONT_PASS(cudaPeekAtLastError);
    TELL(judge_looked);
    return CALL(BELOW(cudaPeekAtLastError));
}

cudaError_t cudaDeviceSynchronize(void) {
    ENTER_WAIT(cudaDeviceSynchronize);
    int device = current_device();
    TELL(judge_wait_device, device, at);
    struct timeline_wait wait = {
        .at = at, .on_device = true, .device = device, .world = -1};
    return wait_over(HOST_WAITS(&wait, CALL(BELOW(cudaDeviceSynchronize))), true, at);
}

cudaError_t cudaDeviceReset(void) {
    ENTER(cudaDeviceReset);
    int device = current_device();
    TELL(judge_wait_device, device, at);
    if (timeline_on)
        timeline_device_reset();
    cudaError_t error = wait_over(CALL(BELOW(cudaDeviceReset)), true, at);
    if (error != cudaSuccess)
        return error;
    struct judge *j = front_in();
    allocations_reset(j, device, at);
    streams_reset(j, device);
    events_reset(j, device);
    graphs_reset(j);
    comms_reset(j, device, at);
    front_out();
    return error;
}

static cudaError_t peer_access(cudaError_t error, int peer, bool on, struct judge_at at) {
    if (error == cudaSuccess) {
        int device = current_device();
        TELL(judge_peer_access, device, peer, on);
    }
    return answer(error, at);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    ENTER(cudaDeviceEnablePeerAccess, peer, flags);
    return peer_access(CALL(BELOW(cudaDeviceEnablePeerAccess), peer, flags), peer, true,
                       at);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    ENTER(cudaDeviceDisablePeerAccess, peer);
    return peer_access(CALL(BELOW(cudaDeviceDisablePeerAccess), peer), peer, false, at);
}

/* Without a device it fails, and that is the answer. */
cudaError_t cudaGetDeviceCount(int *count) {
    FRONT_PASS(cudaGetDeviceCount, count);
    return CALL(BELOW(cudaGetDeviceCount), count);
}
