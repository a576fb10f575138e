/* memory.h: allocations, each with two addresses. */
#ifndef CPU_MEMORY_H
#define CPU_MEMORY_H

#include "base/base.h"

enum memory_kind { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_MANAGED };

/* One allocation: at `user` as the program may use it (a device's memory not at all), at
 * `shadow` as this library reads and writes it. */
struct memory {
    char *user, *shadow;
    size_t bytes, mapped;
    enum memory_kind kind;
    int device;
    unsigned pins;   // transfers that still use it
    bool freed;      // by the program; goes with the last pin
    int arena;       // that it is part of; -1: none
    bool closed;     // to other processes: cudaMallocAsync, ncclMemAlloc
    bool of_nccl;    // ncclMemAlloc
    bool registered; // the program's own (cudaHostRegister): both addresses are the same
    bool moved;      // into a file of its own, for other processes to open
    int file;        // which; -1: none, or none any more
    unsigned graphs; // operations that allocate it at each launch; it stays as long
    bool vacant;     // and none of it is used between two launches
    unsigned opened; // how often, if it is another process's; 0: it is our own
    uint64_t key;    // of what was opened: tells it from all else
};

/* NULL: no room. The first 64 MiB of fresh device memory are all ones, no number of any
 * float type. */
struct memory *memory_create(size_t bytes, enum memory_kind kind, int device);
/* Of memory that is there already; NULL: part of it is an allocation's. */
struct memory *memory_register(void *start, size_t bytes, int device);
void memory_destroy(struct memory *memory);
void memory_fresh(struct memory *memory); // as if it had just been created

struct memory *memory_find(const void *address); // NULL: not ours
/* The allocation that all of the range lies in; NULL: there is none. */
struct memory *memory_range(const void *start, size_t bytes);
/* Where this library may touch what the program calls `address`. */
void *shadow(const void *address);

/* Other processes can open it from now on: `file` has its bytes. False: no room. */
bool memory_share(struct memory *memory);
/* What another process has shared, opened once; NULL: no room. The file may be closed. */
struct memory *memory_open(int file, size_t bytes, int device, uint64_t key);
struct memory *memory_opened(uint64_t key, int device); // NULL: not open

/* Other processes' memory by the handles of ipc.c. False, an error: it can't be. */
bool ipc_share(struct memory *memory, cudaIpcMemHandle_t *out);
cudaError_t ipc_open(const cudaIpcMemHandle_t *given, int device, struct memory **out);
void ipc_close(struct memory *memory);

/* Kernels: see standin_reach_size. */
void memory_guards(void);  // from now on: pages that lead nowhere between allocations
bool memory_guarded(void); // the program has kernels
/* A variable of the program that is the device's. NULL: no room. */
struct memory *memory_variable(void *address, size_t bytes, int device);
const char *memory_user_address(const char *address); // as the program knows it
struct memory *memory_near(const char *address);      // NULL: none is
bool memory_was_freed(const char *address);           // unless it lay in an arena

/* As long as it is pinned it stays mapped, even if it is freed. */
void memory_pin(struct memory *memory);
void memory_unpin(struct memory *memory);

size_t memory_used(int device);       // bytes of its own
void memory_reset_device(int device); // frees all of it

#endif
