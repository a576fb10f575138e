/*
 * rendezvous.h: how the checks of a job's processes find one another without MPI.
 */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H

#include "below.h"

#include <nccl.h>

/* This process has made a unique id. */
void rendezvous_id_made(const ncclUniqueId *id);
/* It is about to join a communicator as one of several processes. If a launcher says in
 * RANK and WORLD_SIZE who it is, as torchrun does, they meet at MASTER_ADDR; otherwise
 * where the unique id says that its maker is. NULL: the way is begun, and `rank` and
 * `nranks` are set to this process's place in the job; else why it can't be. */
const char *rendezvous_begins(const ncclUniqueId *ids, int nids, int *rank, int *nranks);

/* No launcher has said how large the job is: it was taken to be the first communicator,
 * which may be a part of it. */
bool rendezvous_size_is_guessed(void);

#endif
