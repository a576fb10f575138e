/* meet.h: how ranks find one another and become a communicator. */
#ifndef CPU_MEET_H
#define CPU_MEET_H

#include "data/comm.h"

void meet_start(void);
ncclResult_t meet_unique_id(ncclUniqueId *id, bool grows); // for ncclCommGrow
/* A rank is about to join: where nothing connects this process with others, it has to be
 * known of all of its ranks before the first one waits. May be called again; `called`: by
 * a call of the program, in its thread. False: it cannot join, and will be told. */
bool meet_announce(const ncclUniqueId *id, int rank, int nranks, bool called);
/* For a rank of a communicator that is to grow, if it has been told the id. */
void meet_announce_growth(struct ncclComm *comm, int nranks);
void meet_seated(void); // MPI was started after a meeting by an id: see join.h

/* Each begins what ends when the new communicator is no longer JOINING: it is READY, or
 * has an error. */
ncclResult_t meet_join(struct ncclComm *comm, const ncclUniqueId *id, uint64_t others,
                       int rank, int nranks);
/* Of more ids with which the same ranks meet: a number that depends on all of them. */
uint64_t meet_other_ids(const ncclUniqueId *ids, int n);
void meet_alone(struct ncclComm *const *comms, int n); // all of its ranks are given

/* The program gives it up while it is still JOINING. */
void meet_leave(struct ncclComm *comm);

ncclResult_t nccl_error(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *nccl_last_error(void);

#endif
