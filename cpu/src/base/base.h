/* base.h: the lock, the time, the host's memory, and the end of the job. */
#ifndef CPU_BASE_H
#define CPU_BASE_H

/* What a program may call is seen from outside the library; all else is not: the sources
 * are compiled with -fvisibility=hidden. */
#pragma GCC visibility push(default)
#include <cuda_runtime.h>
#include <nccl.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One lock for everything. A public function takes it for the rest of its scope, and may
 * call another one that does. */
void base_lock(void);
void base_unlock(void);
static inline void base_leave(const int *unused) {
    (void)unused;
    base_unlock();
}
#define LOCKED                                                   \
    __attribute__((cleanup(base_leave), unused)) int locked = 0; \
    base_lock()

/* Once per look of a wait that found nothing, with the number of such looks: lets other
 * threads have the lock, and other processes the processor. */
void base_pause(unsigned looks);

double now(void); // seconds
/* How long processes may take to come together before somebody says who is missing. */
double base_patience(void);
uint64_t base_random(void);
uint64_t base_process(void); // a number that no other process has, on any machine

void *base_alloc(size_t bytes);              // zeroed; never NULL
void *base_grow(void *memory, size_t bytes); // realloc that never fails

/* Prints "CPU build: …" and ends the job, all of its ranks. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void (*fail_everywhere)(void); // ends the other ranks; set where MPI is started

#endif
