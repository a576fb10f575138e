/*
 * state.h: how a process that waits describes itself to rank 0: a head, and after it, as
 * many as it says, waits, their peers, what they launch, operations, what those come
 * after, communicators, pairs of ranks, and two texts: what failed last, and first.
 */
#ifndef STATE_H
#define STATE_H

#include "ranks/message_formats.h"

enum wait_kind {
    WAIT_ORDER,    // for operations
    WAIT_LAUNCH,   // inside NCCL
    WAIT_LEAVE,    // in ncclCommDestroy, for the ranks of the machine
    WAIT_MPI,      // in MPI
    WAIT_COMM,     // asks whether a communicator is ready
    WAIT_EXIT,     // has ended without the call; as enum judge_finish, as the next
    WAIT_FINALIZE, // in MPI_Finalize
    WAIT_ENDS_JOB
};

enum state_part { WAITS, ITEMS, OPS, COMMS, PAIRS, INTS, PARTS };
struct state_head {
    // more: operations than it holds; busy: it goes on, and these are its operations
    unsigned char message, more, busy, pad[5];
    uint64_t activity;
    uint64_t meetings;                // judge_meets's, so far
    uint64_t failed_site;             // what NCCL refused last
    uint64_t unlooked, unlooked_site; // errors nobody asked about; the first of them
    double worked; // the least that a thread has that waits in MPI; negative: not known
    int32_t computing; // threads that do not wait
    int32_t n[PARTS], words_bytes;
    char unlooked_call[CALL_NAME];
    char host[JUDGE_HOST];
};

struct state_wait {
    uint64_t site, comm;
    uint64_t meeting; // WAIT_MPI: judge_meets's; 0: none
    int32_t kind, poll, comm_number, pad;
    // WAIT_ORDER: operations; WAIT_MPI: ranks of the world; WAIT_LAUNCH: items.
    int32_t first, n; // -1: not known
    int32_t one_of;   // WAIT_MPI: any of the ranks will do
    int32_t way;      // WAIT_MPI: enum judge_way
    int32_t aborts;   // WAIT_ORDER: a communicator whose operations come later
    char call[CALL_NAME];
};

struct state_op {
    struct fact fact;
    int32_t first_before, nbefore; // among the ints
    int32_t signals, pad;          // signals: enum awaits
    char call[CALL_NAME];
};

struct state_comm {
    uint64_t id, collectives;
    struct called called;
    int32_t rank, pad;
};

static const size_t state_bytes[PARTS] = {
    [WAITS] = sizeof(struct state_wait), [ITEMS] = sizeof(struct recent_call),
    [OPS] = sizeof(struct state_op),     [COMMS] = sizeof(struct state_comm),
    [PAIRS] = sizeof(struct pair_count), [INTS] = sizeof(int32_t)};

#endif
