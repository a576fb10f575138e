/*
 * trace.h: the notes of all ranks, and the file that is made of them: Chrome's trace
 * event format, which Perfetto (ui.perfetto.dev) opens.
 */
#ifndef TRACE_H
#define TRACE_H

#include "judge.h"

#include <stdio.h>

enum { TRACE_NAME = 40 };

/* An operation on a stream, or a call in which the host waited. Ranks send it to one
 * another as it is. */
struct trace_note {
    double start, end; // seconds; an end before the start: it has not ended
    uint64_t site;
    int32_t track;  // of an operation: index; of the host: -1 - its thread
    int32_t group;  // operations of one group of NCCL's have the same number; 0: in none
    int32_t waited; // track that the host waited for; -1: all of `device`; -2: none
    int32_t device;
    int32_t world; // rank of the world that it waited for, or -1
    uint64_t bytes, count;
    // Which operation of which communicator, the same on all ranks: the `order`-th (from
    // 1) collective, or the `order`-th from this rank to `peer` or back. Of the host: the
    // `order`-th MPI call of the group of ranks `comm`.
    uint64_t comm, order;
    int32_t number; // of the communicator, as the reports name it; 0: no call of NCCL's
    int32_t rank, type, redop, root, peer; // -1: none
    int32_t collective;
    char name[TRACE_NAME], call[TRACE_NAME];
};

struct trace_track { // a stream
    int32_t device, number;
    int32_t kind; // 0: a stream of the program's, 1: the default one, 2: a thread's own
};

struct trace_part { // of one process
    int32_t rank, device;
    int32_t threads; // of the host
    int32_t lost;    // operations that had no more room
    double now;      // what has not ended by then, has not ended
    uint64_t nnotes, ntracks;
    char host[JUDGE_HOST];
    struct trace_note *notes;
    struct trace_track *tracks;
};

/* The lines of sites, which are in ascending order, or "". */
typedef void trace_places(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]);

/* Works out who waited for whom, and writes. `clock`: whose times they are. */
void trace_write(FILE *out, struct trace_part *parts, int nparts, const char *clock,
                 trace_places *places);

#endif
