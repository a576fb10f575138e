/*
 * nccl.h of the CPU build: no GPU is used, MPI carries the data.
 *
 * It declares what the host calls in NCCL 2.32. Names, types, values and signatures are
 * those that NVIDIA publishes, so a program compiles unchanged against this header and
 * against the real one.
 *
 * The rules in the comments come from the NCCL User Guide; each group names the page.
 * Unless a comment says otherwise, a call returns ncclSuccess; a null or wrong argument
 * gives ncclInvalidArgument, a call that is right but not allowed here and now gives
 * ncclInvalidUsage, and ncclGetLastError then says in words what was wrong. Counts are in
 * elements, not bytes. Buffers are device memory, and calls that move data are queued on
 * a stream: common/cuda.md says what these are.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

/* Up to 2.8 a version was X * 1000 + Y * 100 + Z, since then it is X * 10000 + Y * 100 +
 * Z. */
#define NCCL_VERSION(X, Y, Z) \
    (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 23203

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- types
 * NCCL User Guide, Types. */

/* One rank's view of a group of ranks that communicate. */
typedef struct ncclComm *ncclComm_t;
#define NCCL_COMM_NULL NULL

/* A buffer registered on every rank of a communicator. */
typedef struct ncclWindow_vidmem *ncclWindow_t;

/* What one rank makes and all ranks need to find each other; MPI_Bcast it as bytes. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclTimeout = 8,
    ncclNumResults = 9
} ncclResult_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;

/* The reductions that NCCL knows; ncclRedOpCreatePreMulSum makes more, from ncclNumOps up
 * to ncclMaxRedOp, the largest number that fits the type. */
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4, /* the sum divided by the number of ranks */
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

/* Where the scalar of a reduction of one's own lies, and so when it is read: while the
 * collective runs (device), or before the call that makes the reduction returns (host
 * immediate). */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_UNDEF_FLOAT (-1.0f)
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM 0x01
#define NCCL_API_MAGIC 0xcafebeef

typedef enum {
    ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
    ncclHostCftEnable = 1,
    ncclHostCftDisable = 2,
    ncclHostCftFallback = 3
} ncclHostCftMode_t;

typedef enum {
    ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
    ncclNvlsHostModeEnable = 0,
    ncclNvlsHostModeDisableTransport = 1,
    ncclNvlsHostModeDisableSymmetricMultimem = 2,
    ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/* How a communicator is to behave. Start from NCCL_CONFIG_INITIALIZER and change what is
 * wanted; a struct filled in any other way is refused. With `blocking` 0 the calls that
 * make, split and finalize a communicator return ncclInProgress, and
 * ncclCommGetAsyncError says when they are over. The rest tunes GPU kernels and networks,
 * and changes nothing here. */
typedef struct ncclConfig_v23100 {
    size_t size; /* the first three belong to NCCL */
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
    int nChannelsPerNetPeer;
    int nvlinkCentricSched;
    int graphUsageMode;
    int numRmaCtx;
    int maxP2pPeers;
    int graphStreamOrdering;
    int launchOrderImplicit;
    int numRmaSig;
    int rmaEagerInit;
    int hostCftMode;
    int nvlsHostMode;
} ncclConfig_t;

/* One value for each field above, in the same order. */
#define NCCL_CONFIG_INITIALIZER                                                         \
    {                                                                                   \
        sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
            NCCL_CONFIG_UNDEF_INT                                                       \
    }

/* An option of another vendor's library: a list, which NCCL does not read. */
typedef struct ncclConfigExt {
    struct ncclConfigExt *next;
    struct {
        int vendorId;
        int optionId;
    } key;
    union {
        int i;
        const char *s;
        void *raw;
    } val;
} ncclConfigExt_t;

/* How one collective is to behave, the same on every rank. Start from
 * NCCL_COLLCONFIG_INITIALIZER. `launchCompletionEvent` is recorded when the operation
 * has been launched: on all ranks or on none, and once per communicator in a group. The
 * rest tunes GPU kernels, and changes nothing here. */
typedef struct ncclCollConfig_v23200 {
    size_t size; /* the first three belong to NCCL */
    unsigned int magic;
    unsigned int version;
    ncclConfigExt_t *ext;
    int minCTAs;
    int maxCTAs;
    int nvlsCTAs;
    int cgaClusterSize;
    const char *algSelection;
    int forceAlgSelection;
    int CTAPolicy;
    uint64_t userProfilerTag;
    cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                 \
    {                                                                               \
        sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE,                \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,    \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, 1, \
            NCCL_CONFIG_UNDEF_INT, 0, NCCL_CONFIG_UNDEF_PTR                         \
    }

/* What ncclGroupSimulateEnd answers. Start from NCCL_SIM_INFO_INITIALIZER. */
typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
    { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

/* What ncclCommMemStats counts: bytes that NCCL itself has, not the program. */
typedef enum {
    ncclStatGpuMemSuspend = 0,   /* that a suspended communicator gives back */
    ncclStatGpuMemSuspended = 1, /* 1 while it is suspended, else 0 */
    ncclStatGpuMemPersist = 2,   /* that it keeps */
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/* For ncclWaitSignal: `opCnt` signals from rank `peer`. */
typedef struct {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;

typedef enum {
    NCCL_ENCRYPTION_MODE_NONE = 0,
    NCCL_ENCRYPTION_MODE_PSK = 1
} ncclEncryptionMode_t;

typedef struct ncclEncryptionConfig_v23200 {
    size_t size; /* the first three belong to NCCL */
    unsigned int magic;
    unsigned int version;
    int mode;
    const char *psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                 \
    {                                                                      \
        sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
            NCCL_ENCRYPTION_MODE_NONE, NCCL_CONFIG_UNDEF_PTR               \
    }

/* One of NCCL's settings. */
typedef struct ncclParamHandle *ncclParamHandle_t;

/* ---------------------------------------------------------------- communicators
 * NCCL User Guide, Communicator Creation and Management Functions. */

/* Writes NCCL_VERSION_CODE. */
ncclResult_t ncclGetVersion(int *version);

/* Makes an id for one new communicator. One rank calls it, all others get a copy. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId);

/* Makes this process rank `rank` (0 … nranks - 1) of a new communicator of `nranks`
 * ranks, on the current device. Every rank calls it with the same id, and it waits for
 * all of them. Two ranks on one device: ncclInvalidUsage. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                              int rank);

/* The same with a configuration; null means the default one. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                                    int rank, ncclConfig_t *config);

/* The same with `nId` unique ids, the same ones in the same order on every rank: large
 * jobs meet faster at several places. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
                                      int nId, ncclUniqueId *commIds,
                                      ncclConfig_t *config);

/* Makes `ndev` communicators in this process, one for each device in `devlist` (null:
 * devices 0 … ndev - 1), and writes them into comm[0 … ndev - 1]. Needs no MPI. A device
 * twice: ncclInvalidUsage. */
ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);

/* Makes of the ranks of `comm` with the same `color` (0 or more) one new communicator
 * each, ordered by `key`, then by their old rank. NCCL_SPLIT_NOCOLOR: none for this rank,
 * and `newcomm` becomes NCCL_COMM_NULL. All ranks of `comm` must call it. A null `config`
 * takes that of `comm`. If `comm` does not block, it returns ncclSuccess at once, and
 * `newcomm` stays NULL until ncclCommGetAsyncError says of `comm` that it has settled. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config);

/* Makes of the ranks of `comm` that are not in the list one new communicator, in the
 * order of their old ranks. They call it with the same list; those in the list do not.
 * Nothing may be under way on `comm`; with NCCL_SHRINK_ABORT it is dropped first. `comm`
 * stays, and is given up as ever. A null `config` takes that of `comm`. `newcomm` is
 * there when it is after ncclCommSplit. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                            ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags);

/* Makes an id with which new ranks join `comm`, once. One rank calls it before
 * ncclCommGrow, and gives the id to the new ranks. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);

/* Makes a new communicator of the ranks of `comm`, which keep their numbers, and new
 * ones: `nRanks` in all, more than `comm` has. The ranks of `comm` give -1 as `rank` and
 * a null `uniqueId` (the rank that made it may give it); a new one gives a null `comm`,
 * the id and its number. Nothing may be under way on `comm`, which stays, and is given
 * up as ever. */
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
                          int rank, ncclComm_t *newcomm, ncclConfig_t *config);

/* Waits for all work that was queued with `comm`, the first half of ncclCommDestroy;
 * all ranks call it. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);

/* Gives the communicator up; finalizes it first where that was not done. Returns when all
 * its ranks on this node have given it up too: finalized, destroyed or aborted it (inside
 * a group at once). NCCL User Guide, "Communicator Creation and Management Functions":
 * an intra-node collective call. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);

/* Gives the communicator up and drops what is still queued with it; may be called by one
 * rank alone. */
ncclResult_t ncclCommAbort(ncclComm_t comm);

/* Drops what is under way with the communicator, whatever the other ranks do. After that
 * it can be split, shrunk, destroyed or aborted, and nothing else; `revokeFlags` is
 * NCCL_REVOKE_DEFAULT. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* Gives back the memory that NCCL itself has for `comm` (NCCL_SUSPEND_MEM). All ranks
 * call it when nothing is under way. Nothing is queued with `comm` until
 * ncclCommResume. */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);

/* Takes that back; all ranks call it. */
ncclResult_t ncclCommResume(ncclComm_t comm);

/* Writes how much memory NCCL itself has for `comm`. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* Writes the error that happened behind the program's back, ncclSuccess if none did, or
 * ncclInProgress while a non-blocking call goes on. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);

/* Writes the number of ranks. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);

/* Writes the device that this rank had when the communicator was made. */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);

/* Writes this process's rank. */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

/* The code in words. Never null, not to be freed. */
const char *ncclGetErrorString(ncclResult_t result);

/* What went wrong last, in words and in full; `comm` may be null. Not to be freed. */
const char *ncclGetLastError(ncclComm_t comm);

/* ---------------------------------------------------------------- memory
 * NCCL User Guide, Communicator Creation and Management Functions, and User Buffer
 * Registration. Registering speeds the real NCCL up; here it checks its arguments. */

/* Allocates `size` bytes on the current device, fit for registering. */
ncclResult_t ncclMemAlloc(void **ptr, size_t size);

/* Frees what ncclMemAlloc gave; null does nothing. */
ncclResult_t ncclMemFree(void *ptr);

/* Registers `size` bytes at `buff` with `comm` and writes a handle. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
                              void **handle);

/* Takes that back. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);

/* Registers the buffers of all ranks together: all ranks call it, and it waits for all
 * of them. With NCCL_WIN_COLL_SYMMETRIC in `winFlags` the other ranks may put data into
 * it. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                    ncclWindow_t *win, int winFlags);

/* Takes that back, for this rank alone. What is no window of `comm` gives
 * ncclInternalError, here and below. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* Writes the address that `win` was registered with. */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* ---------------------------------------------------------------- reductions of one's
 * own NCCL User Guide, User Defined Reduction Operators. */

/* Makes a reduction that multiplies each rank's elements by that rank's scalar and adds
 * them up. It works with `comm` and `datatype` only; `scalar` points to one element of
 * that type, in the memory that `residence` says. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                      ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);

/* Gives the reduction up, as soon as the last call that uses it has returned. A built-in
 * one: ncclInvalidArgument. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---------------------------------------------------------------- collectives
 * NCCL User Guide, Collective Communication Functions. Every rank of `comm` makes the
 * same call with the same count, type, reduction and root. The call returns when the
 * operation is queued on `stream`; the result is there when the stream has come so far.
 * Buffers lie in device memory. */

/* Reduces the `count` elements of all ranks and leaves the result on rank `root`.
 * `recvbuff` is not used elsewhere. In place if sendbuff == recvbuff. */
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t datatype, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream);

/* ncclBroadcast in place, the old spelling. */
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
                       ncclComm_t comm, cudaStream_t stream);

/* Copies `count` elements from `sendbuff` on rank `root` to `recvbuff` on every rank,
 * root included. `sendbuff` is not used elsewhere. In place if sendbuff == recvbuff. */
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream);

/* Reduces the `count` elements of all ranks and leaves the same result on every rank. In
 * place if sendbuff == recvbuff. */
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);

/* Reduces the nranks * recvcount elements of all ranks and leaves block r of the result
 * on rank r. In place if recvbuff == sendbuff + rank * recvcount. */
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);

/* Collects `sendcount` elements of every rank on every rank, those of rank r at r *
 * sendcount. In place if sendbuff == recvbuff + rank * sendcount. */
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Sends the `count` elements at sendbuff + r * count to rank r, for every r, and puts
 * those that come from rank r at recvbuff + r * count. */
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Collects `count` elements of every rank on rank `root`, those of rank r at r * count.
 * `recvbuff` is not used elsewhere. In place if sendbuff == recvbuff + root * count. */
ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
                        ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/* Sends the `count` elements at sendbuff + r * count on rank `root` to rank r, for every
 * r; `sendbuff` is not used elsewhere. In place if
 * recvbuff == sendbuff + root * count. */
ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm,
                         cudaStream_t stream);

/* ---------------------------------------------------------------- collectives, one by
 * one. The same with a configuration for this call; null means none. */

ncclResult_t ncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
                              ncclDataType_t datatype, ncclRedOp_t op, int root,
                              ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
                                 ncclDataType_t datatype, int root, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
                                 ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *sendbuff, void *recvbuff,
                                     size_t recvcount, ncclDataType_t datatype,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
                                 ncclDataType_t datatype, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
                                ncclDataType_t datatype, ncclComm_t comm,
                                cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
                              ncclDataType_t datatype, int root, ncclComm_t comm,
                              cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
                               ncclDataType_t datatype, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t *config);

/* ---------------------------------------------------------------- point to point
 * NCCL User Guide, Point To Point Communication Functions. Each call blocks its stream
 * until the other rank makes the matching one, with the same count and type; calls that
 * need each other belong into one group. */

/* Sends `count` elements to rank `peer`. To oneself only in a group with the receive:
 * otherwise ncclInvalidUsage. */
ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
                      int peer, ncclComm_t comm, cudaStream_t stream);

/* Receives `count` elements from rank `peer`. */
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);

/* ---------------------------------------------------------------- one-sided
 * NCCL User Guide, Point To Point Communication Functions, One-sided communication. The
 * calls are queued as the others are. `ctx` and `flags` are 0, and so is `sigIdx`, if
 * numRmaSig in ncclConfig_t does not allow more. */

/* Writes `count` elements from `localbuff` to `peerWinOffset` bytes after the beginning
 * of rank `peer`'s part of the window, then signals it. `localbuff` lies in a window with
 * NCCL_WIN_COLL_SYMMETRIC, too, and can be used again when the operation is done. */
ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
                           int peer, ncclWindow_t peerWin, size_t peerWinOffset,
                           int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream);

/* Signals rank `peer`; what this rank put there before is there then. */
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
                        ncclComm_t comm, cudaStream_t stream);

/* The stream waits until all the signals have come; it uses them up. Without a window
 * with NCCL_WIN_COLL_SYMMETRIC on `comm` so far, this and ncclSignal return
 * ncclInvalidUsage.
 */
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
                            cudaStream_t stream);

/* ---------------------------------------------------------------- groups
 * NCCL User Guide, Group Calls. */

/* Opens a group: the calls up to the matching ncclGroupEnd become one operation, and
 * nothing is queued before that. Groups nest; the outermost counts. */
ncclResult_t ncclGroupStart(void);

/* Closes the group. Returns the first error of the calls in it. Without a group:
 * ncclInvalidUsage. */
ncclResult_t ncclGroupEnd(void);

/* Closes the group and queues nothing: writes how long its calls would take, in µs, by
 * the modelled clock (NCCL_CPU_CLOCK); without one `estimatedTime` stays as it is. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo);

/* ---------------------------------------------------------------- settings
 * NCCL User Guide, NCCL Parameter API. A key is the name of an environment variable; one
 * that is not known, or not of the type asked for, gives ncclInvalidArgument. */

ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key);
ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t *out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t *out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t *out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t *out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t *out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t *out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t *out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t *out);
ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char **out);

/* Copies the value's bytes, at most `maxLen`, and writes how many they are. */
ncclResult_t ncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len);

/* Writes the value as a string, valid until this thread's next call. */
ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *valueLen);

/* Writes a table of all keys, valid until this thread's next call. */
ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen);

/* Prints all keys and their values. */
void ncclParamDumpAll(void);

/* Asks for encrypted sockets, before there is a communicator. Here MPI carries the data,
 * and it has no effect. */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config);

/* Each function has a second name, for a program or a tool with an ncclX of its own that
 * calls pncclX. */
__typeof__(ncclGetVersion) pncclGetVersion;
__typeof__(ncclGetUniqueId) pncclGetUniqueId;
__typeof__(ncclCommInitRank) pncclCommInitRank;
__typeof__(ncclCommInitRankConfig) pncclCommInitRankConfig;
__typeof__(ncclCommInitRankScalable) pncclCommInitRankScalable;
__typeof__(ncclCommInitAll) pncclCommInitAll;
__typeof__(ncclCommSplit) pncclCommSplit;
__typeof__(ncclCommShrink) pncclCommShrink;
__typeof__(ncclCommGetUniqueId) pncclCommGetUniqueId;
__typeof__(ncclCommGrow) pncclCommGrow;
__typeof__(ncclCommFinalize) pncclCommFinalize;
__typeof__(ncclCommDestroy) pncclCommDestroy;
__typeof__(ncclCommAbort) pncclCommAbort;
__typeof__(ncclCommRevoke) pncclCommRevoke;
__typeof__(ncclCommSuspend) pncclCommSuspend;
__typeof__(ncclCommResume) pncclCommResume;
__typeof__(ncclCommMemStats) pncclCommMemStats;
__typeof__(ncclCommGetAsyncError) pncclCommGetAsyncError;
__typeof__(ncclCommCount) pncclCommCount;
__typeof__(ncclCommCuDevice) pncclCommCuDevice;
__typeof__(ncclCommUserRank) pncclCommUserRank;
__typeof__(ncclGetErrorString) pncclGetErrorString;
__typeof__(ncclGetLastError) pncclGetLastError;
__typeof__(ncclMemAlloc) pncclMemAlloc;
__typeof__(ncclMemFree) pncclMemFree;
__typeof__(ncclCommRegister) pncclCommRegister;
__typeof__(ncclCommDeregister) pncclCommDeregister;
__typeof__(ncclCommWindowRegister) pncclCommWindowRegister;
__typeof__(ncclCommWindowDeregister) pncclCommWindowDeregister;
__typeof__(ncclWinGetUserPtr) pncclWinGetUserPtr;
__typeof__(ncclRedOpCreatePreMulSum) pncclRedOpCreatePreMulSum;
__typeof__(ncclRedOpDestroy) pncclRedOpDestroy;
__typeof__(ncclReduce) pncclReduce;
__typeof__(ncclBcast) pncclBcast;
__typeof__(ncclBroadcast) pncclBroadcast;
__typeof__(ncclAllReduce) pncclAllReduce;
__typeof__(ncclReduceScatter) pncclReduceScatter;
__typeof__(ncclAllGather) pncclAllGather;
__typeof__(ncclAlltoAll) pncclAlltoAll;
__typeof__(ncclGather) pncclGather;
__typeof__(ncclScatter) pncclScatter;
__typeof__(ncclReduceConfig) pncclReduceConfig;
__typeof__(ncclBroadcastConfig) pncclBroadcastConfig;
__typeof__(ncclAllReduceConfig) pncclAllReduceConfig;
__typeof__(ncclReduceScatterConfig) pncclReduceScatterConfig;
__typeof__(ncclAllGatherConfig) pncclAllGatherConfig;
__typeof__(ncclAlltoAllConfig) pncclAlltoAllConfig;
__typeof__(ncclGatherConfig) pncclGatherConfig;
__typeof__(ncclScatterConfig) pncclScatterConfig;
__typeof__(ncclSend) pncclSend;
__typeof__(ncclRecv) pncclRecv;
__typeof__(ncclPutSignal) pncclPutSignal;
__typeof__(ncclSignal) pncclSignal;
__typeof__(ncclWaitSignal) pncclWaitSignal;
__typeof__(ncclGroupStart) pncclGroupStart;
__typeof__(ncclGroupEnd) pncclGroupEnd;
__typeof__(ncclGroupSimulateEnd) pncclGroupSimulateEnd;
__typeof__(ncclParamBind) pncclParamBind;
__typeof__(ncclParamGetI8) pncclParamGetI8;
__typeof__(ncclParamGetI16) pncclParamGetI16;
__typeof__(ncclParamGetI32) pncclParamGetI32;
__typeof__(ncclParamGetI64) pncclParamGetI64;
__typeof__(ncclParamGetU8) pncclParamGetU8;
__typeof__(ncclParamGetU16) pncclParamGetU16;
__typeof__(ncclParamGetU32) pncclParamGetU32;
__typeof__(ncclParamGetU64) pncclParamGetU64;
__typeof__(ncclParamGetStr) pncclParamGetStr;
__typeof__(ncclParamGet) pncclParamGet;
__typeof__(ncclParamGetParameter) pncclParamGetParameter;
__typeof__(ncclParamGetAllParameterKeys) pncclParamGetAllParameterKeys;
__typeof__(ncclParamDumpAll) pncclParamDumpAll;
__typeof__(ncclSetEncryption) pncclSetEncryption;

#ifdef NCCL_OS_LINUX
/* Reads NCCL_DEBUG again. Not for new programs. */
__attribute__((deprecated)) void ncclResetDebugInit(void);
#else
#define ncclResetDebugInit()
#endif

#ifdef __cplusplus
}
#endif

#endif
