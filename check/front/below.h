/*
 * below.h: the functions that lie below the front: the stand-in's, which is linked after
 * it in the CPU build (FRONT_LINKED), or those of the libraries that are loaded after it.
 */
#ifndef BELOW_H
#define BELOW_H

#include "standin.h"

/* BELOW(cudaMalloc) is the function below; PNCCL(ncclAllReduce) likewise, which NCCL's
 * library has under a name of its own for this purpose (pncclAllReduce, its profiling
 * interface), and MPI under PMPI_. NULL where the library is older than the function. */
#ifdef FRONT_LINKED
#define BELOW(name)                             \
    ({                                          \
        extern __typeof__(name) standin_##name; \
        (__typeof__(&(name)))&standin_##name;   \
    })
#define PNCCL(name) BELOW(name)
#else
#define LIES_BELOW(name, text)        \
    ({                                \
        static void *found;           \
        if (!found)                   \
            found = front_find(text); \
        (__typeof__(&(name)))found;   \
    })
#define BELOW(name) LIES_BELOW(name, #name)
#define PNCCL(name) LIES_BELOW(name, "p" #name)
#endif
/* The next definition of a function; NULL: there is none. */
void *front_find(const char *name);

/* The stand-in, where OVER_STANDIN (check/build.mk) says that it is below:
 * STANDIN(host_blocks)(1) calls standin_host_blocks. Where the stand-in comes with a
 * library that the program loads later, the loader would not find it. */
#ifdef FRONT_LINKED
#define STANDIN(name) standin_##name
#else
#define STANDIN(name) BELOW(standin_##name)
#endif

#endif
