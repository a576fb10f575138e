/*
 * cuda_driver.c: the functions of CUDA's driver that wait, or put operations in order.
 *
 * They are below the runtime, which has other ways to them. A program that calls them
 * itself puts things in order which the judge would take for unordered: the checks give
 * up.
 */
#include "handles.h"
#include "talk.h"

#if !OVER_STANDIN

/* All have at most six arguments, each of which is a number or an address. */
#define DRIVER(name)                                                 \
    PUBLIC int name(long a, long b, long c, long d, long e, long f); \
    int name(long a, long b, long c, long d, long e, long f) {       \
        if (!NOT_THE_PROGRAM)                                        \
            talk_gives_up("the program calls " #name                 \
                          ", a function of CUDA's driver; the"       \
                          " checks know those of the runtime");      \
        return BELOW(name) ? BELOW(name)(a, b, c, d, e, f) : 3;      \
    }

DRIVER(cuCtxSynchronize)
DRIVER(cuStreamSynchronize)
DRIVER(cuStreamSynchronize_ptsz)
DRIVER(cuStreamQuery)
DRIVER(cuStreamQuery_ptsz)
DRIVER(cuStreamWaitEvent)
DRIVER(cuStreamWaitEvent_ptsz)
DRIVER(cuStreamWaitValue32_v2)
DRIVER(cuStreamWaitValue32_v2_ptsz)
DRIVER(cuStreamWaitValue64_v2)
DRIVER(cuStreamWaitValue64_v2_ptsz)
DRIVER(cuStreamBatchMemOp_v2)
DRIVER(cuStreamBatchMemOp_v2_ptsz)
DRIVER(cuEventRecord)
DRIVER(cuEventRecord_ptsz)
DRIVER(cuEventSynchronize)
DRIVER(cuEventQuery)
DRIVER(cuMemcpyDtoH_v2)
DRIVER(cuMemcpyDtoH_v2_ptds)
DRIVER(cuMemcpyHtoD_v2)
DRIVER(cuMemcpyHtoD_v2_ptds)
DRIVER(cuMemcpyDtoHAsync_v2)
DRIVER(cuMemcpyDtoHAsync_v2_ptsz)
DRIVER(cuMemcpyHtoDAsync_v2)
DRIVER(cuMemcpyHtoDAsync_v2_ptsz)
DRIVER(cuGraphLaunch)
DRIVER(cuGraphLaunch_ptsz)

#endif
