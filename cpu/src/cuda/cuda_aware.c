/*
 * cuda_aware.c has what CPU_MPI=cuda-aware changes: MPI takes device memory, as one does
 * that was built for CUDA. The program's address of it is none that can be read; the
 * calls of MPI are given the address of the same bytes that can.
 */
#include "cuda/cuda_aware.h"
#include "standin.h"

#include "cuda/memory.h"

bool standin_cuda_aware(void) {
    static int asked = -1;
    if (asked < 0) {
        const char *kind = getenv("CPU_MPI");
        asked = kind && strcmp(kind, "cuda-aware") == 0;
    }
    return asked;
}

void *standin_mpi_buffer(const void *buffer) {
    if (standin_cuda_aware()) {
        LOCKED;
        const struct memory *memory = memory_find(buffer);
        if (memory && memory->kind == MEMORY_DEVICE)
            return shadow(buffer);
    }
    return (void *)(uintptr_t)buffer;
}

int MPIX_Query_cuda_support(void) {
    return standin_cuda_aware();
}
