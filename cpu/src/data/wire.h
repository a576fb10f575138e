/* wire.h: messages between processes, and blocks of data. */
#ifndef CPU_WIRE_H
#define CPU_WIRE_H

#include "base/job.h"

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

/* Set by start.c. Starts MPI, if processes need it to meet and the program has not: all
 * of them come to it. */
extern void (*wire_start)(void);
extern bool (*wire_alone)(void); // MPI connects this process with no other, nor will it
void wire_open(void);            // MPI is there; all ranks of MPI_COMM_WORLD call it
void wire_close(void);           // and is about to end; likewise
bool wire_is_open(void);
bool wire_reaches(int world); // false: MPI has ended

/* Messages from one process to another stay in order. */
enum wire_type {
    WIRE_CALL = 1, // a rank has come to a call
    WIRE_JOIN,     // ncclCommInitRank, to the process that made the unique id
    WIRE_JOINED,   // its answer
    WIRE_TYPES
};
void wire_listen(int type, void (*handler)(int from, const char *data, size_t bytes));
void wire_send(int world, int type, const void *head, size_t head_bytes,
               const void *payload, size_t bytes);

/* Blocks that are on their way, all those of one call. */
struct transfers {
    MPI_Request *requests;
    bool *receives; // which of them
    int n, room;
    int local; // within this process
};
int wire_tag(int world); // for blocks to that process: another one than those before
void wire_put(struct transfers *transfers, int world, int tag, const void *from,
              size_t bytes);
void wire_take(struct transfers *transfers, int world, int tag, void *to, size_t bytes);
bool wire_moved(struct transfers *transfers); // all of them; may be asked again
/* Nobody waits for them any more: end(owner) when MPI no longer uses their memory. */
void wire_abandon(struct transfers *transfers, void (*end)(void *owner), void *owner);
void wire_forget(struct transfers *transfers); // they have all moved

#endif
