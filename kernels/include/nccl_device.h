/*
 * nccl_device.h: the part of NCCL's device API with which kernels load and store the
 * memory of ranks on the same host (LSA): teams, windows, barriers of a block. NCCL User
 * Guide, "Device-Initiated Communication".
 */
#ifndef NCCL_DEVICE_H
#define NCCL_DEVICE_H
#pragma GCC system_header

#include "nccl.h"

#include <stdbool.h>

/* A window as kernels see it: where the parts of the ranks of the LSA team are. */
struct ncclWindow_vidmem {
    char **lsaParts;
    int lsaRank, worldRank;
};

/* Ranks of a communicator; `rank` is this one's place among them. */
struct ncclTeam {
    int nRanks, rank, stride;
};
typedef struct ncclTeam ncclTeam_t;

struct ncclLsaBarrierHandle {
    int nBarriers;
};
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;

/* What a kernel gets, by value. */
struct ncclDevComm {
    unsigned int magic, version;
    int rank, nRanks, lsaRank, lsaSize;
    ncclWindow_t resourceWindow; // of the barriers
    ncclLsaBarrierHandle_t lsaBarrier;
};
typedef struct ncclDevComm ncclDevComm_t;

typedef enum { NCCL_GIN_CONNECTION_NONE, NCCL_GIN_CONNECTION_FULL, NCCL_GIN_CONNECTION_RAIL } ncclGinConnectionType_t;
typedef enum {
    NCCL_GIN_TYPE_NONE = 0,
    NCCL_GIN_TYPE_PROXY = 2,
    NCCL_GIN_TYPE_GDAKI = 3,
    NCCL_GIN_TYPE_GPI = 4
} ncclGinType_t;

/* Here ncclDevCommCreate gives barriers (lsaBarrierCount), and refuses all else. */
struct ncclDevCommRequirements {
    size_t size;
    unsigned int magic, version;
    void *resourceRequirementsList, *teamRequirementsList;
    bool lsaMultimem;
    int barrierCount, lsaBarrierCount, railGinBarrierCount;
    int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
    bool ginForceEnable;
    int ginContextCount, ginSignalCount, ginCounterCount;
    ncclGinConnectionType_t ginConnectionType;
    bool ginExclusiveContexts;
    int ginQueueDepth, ginTrafficClass, worldGinBarrierCount;
};
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
    { sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE }

struct ncclCommProperties {
    size_t size;
    unsigned int magic, version;
    int rank, nRanks, cudaDev, nvmlDev;
    bool deviceApiSupport, multimemSupport;
    ncclGinType_t ginType;
    int nLsaTeams;
    bool hostRmaSupport;
    ncclGinType_t railedGinType;
};
typedef struct ncclCommProperties ncclCommProperties_t;
#define NCCL_COMM_PROPERTIES_INITIALIZER \
    { sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE }

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
/* What the communicator can do: whether kernels may use it, and how many LSA teams there
 * are. NCCL 2.29. */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);
/* All ranks call it together. Writes what kernels need. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, ncclDevCommRequirements_t const *reqs, ncclDevComm_t *outDevComm);
/* No kernel may use it any more. */
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, ncclDevComm_t const *devComm);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include "cpu_nvcc_nccl.h"
#endif

#endif
