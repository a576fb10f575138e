/* device.h: errors, devices, and what the calling thread has set. */
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include "cuda/hostfunc.h"
#include "cuda/memory.h"

enum { MAX_DEVICES = 256 };

/* Remembers it for cudaGetLastError. */
cudaError_t cuda_error(cudaError_t error);
int device_now(void);                 // of the calling thread
cudaError_t device_check(int device); // whether there is such a device
/* The same, of one that the program names: what gives it more is said once. */
cudaError_t device_named(const char *call, int device);
void device_ranks_on_host(int ranks); // as many devices, if the environment is silent
const char *device_bus_id(int device, char out[32]);
bool device_reaches(int device, int peer); // peer access, one way or the other
void device_wait(int device);              // for all that is queued on it
/* An allocation on the current device; NULL at *out for 0 bytes. */
cudaError_t device_allocate(void **out, size_t bytes, enum memory_kind kind);

/* This process was forked off by one that had called CUDA: here CUDA cannot be used. */
bool device_forked(void);

/* At the entry of a call of CUDA: takes the lock, refuses a host function's call. */
#define CUDA_CALL                                        \
    if (in_host_function())                              \
        return cuda_error(cudaErrorNotPermitted);        \
    if (device_forked())                                 \
        return cuda_error(cudaErrorInitializationError); \
    LOCKED

#endif
