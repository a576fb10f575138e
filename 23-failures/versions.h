/*
 * versions.h: what failures calls and an older NCCL does not have.
 *
 * NCCL 2.18 can abort and make a communicator anew; 2.27 can shrink one; 2.28.7 can
 * revoke one; 2.29 can grow one. A function that is missing returns ncclInvalidUsage.
 */
#ifndef VERSIONS_H
#define VERSIONS_H

#include "lesson.h"

enum {
    HAS_SHRINK = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3),
    HAS_REVOKE = NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7),
    HAS_GROW = NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2),
};

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
enum { NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT };
#define ncclCommShrink(comm, list, n, made, config, flags) \
    ((void)(comm), (void)(list), (void)(n), (void)(config), ncclInvalidUsage)
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 7)
enum { NCCL_REVOKE_DEFAULT };
#define ncclCommRevoke(comm, flags) ((void)(comm), ncclInvalidUsage)
#endif

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
#define ncclCommGetUniqueId(comm, id) ((void)(comm), (void)(id), ncclInvalidUsage)
#define ncclCommGrow(comm, n, id, rank, made, config) \
    ((void)(comm), (void)(id), (void)(config), ncclInvalidUsage)
#endif

#endif
