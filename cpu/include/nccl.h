/*
 * nccl.h of the CPU build: no GPU is used, MPI carries the data.
 *
 * It declares NCCL 2.28 as far as C programs of the common kind use it. Names, types,
 * values and signatures are those that NVIDIA publishes, so a program that keeps to these
 * calls compiles unchanged against this header and against the real one.
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

#include <cuda_runtime.h>
#include <limits.h>
#include <stddef.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""

/* Up to 2.8 a version was X * 1000 + Y * 100 + Z, since then it is X * 10000 + Y * 100 +
 * Z. */
#define NCCL_VERSION(X, Y, Z) \
    (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 22809

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
    ncclNumResults = 8
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
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* How a communicator is to behave. Start from NCCL_CONFIG_INITIALIZER and change what is
 * wanted; a struct filled in any other way is refused. With `blocking` 0 the calls that
 * make, split and finalize a communicator return ncclInProgress, and
 * ncclCommGetAsyncError says when they are over. The rest tunes GPU kernels and networks,
 * and changes nothing here. */
typedef struct ncclConfig_v22800 {
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
} ncclConfig_t;

/* One value for each field above, in the same order. */
#define NCCL_CONFIG_INITIALIZER                                                      \
    {                                                                                \
        sizeof(ncclConfig_t), 0xcafebeef,                                            \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
            NCCL_CONFIG_UNDEF_INT                                                    \
    }

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

/* Makes `ndev` communicators in this process, one for each device in `devlist` (null:
 * devices 0 … ndev - 1), and writes them into comm[0 … ndev - 1]. Needs no MPI. A device
 * twice: ncclInvalidUsage. */
ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);

/* Makes of the ranks of `comm` with the same `color` (0 or more) one new communicator
 * each, ordered by `key`, then by their old rank. NCCL_SPLIT_NOCOLOR: none for this rank,
 * and `newcomm` becomes NCCL_COMM_NULL. All ranks of `comm` must call it. A null `config`
 * takes that of `comm`. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                           ncclConfig_t *config);

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

/* Registers the buffers of all ranks together; all ranks call it with the same `size`,
 * and with `winFlags` NCCL_WIN_DEFAULT or NCCL_WIN_COLL_SYMMETRIC. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                    ncclWindow_t *win, int winFlags);

/* Takes that back. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

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

/* ---------------------------------------------------------------- groups
 * NCCL User Guide, Group Calls. */

/* Opens a group: the calls up to the matching ncclGroupEnd become one operation, and
 * nothing is queued before that. Groups nest; the outermost counts. */
ncclResult_t ncclGroupStart(void);

/* Closes the group. Returns the first error of the calls in it. Without a group:
 * ncclInvalidUsage. */
ncclResult_t ncclGroupEnd(void);

#ifdef __cplusplus
}
#endif

#endif
