/* exchange.h: calls of NCCL, and how their data gets where it belongs. */
#ifndef CPU_EXCHANGE_H
#define CPU_EXCHANGE_H

#include "data/comm.h"
#include "cuda/memory.h"
#include "data/wire.h"

enum call_kind {
    CALL_BROADCAST,
    CALL_ALL_REDUCE,
    CALL_REDUCE,
    CALL_ALL_GATHER,
    CALL_REDUCE_SCATTER,
    CALL_ALL_TO_ALL,
    CALL_GATHER,
    CALL_SCATTER,
    CALL_SPLIT,
    CALL_SHRINK,
    CALL_WINDOW,
    CALL_SUSPEND, // or resume
    CALL_SEND,
    CALL_RECV,
    CALL_PUT,
    CALL_SIGNAL,
    CALL_WAIT_SIGNAL,
    CALL_LEAVE,   // a rank has given the communicator up
    CALL_GROW_ID, // a rank has made the id with which others join
    CALL_CONNECT  // a rank has come to its first call with this one
};

/* What a rank says of a call to another one. */
struct facts {
    uint64_t comm;
    int32_t rank, to; // in the communicator: who says it, and to whom
    int32_t kind;     // enum call_kind
    int32_t type;     // ncclDataType_t
    int32_t redop;    // ncclRedOp_t; one that the program made as PRE_MUL_SUM
    int32_t root;     // or the peer of a send or receive; -1: none
    uint64_t count;   // elements
    uint64_t seq; // among the collectives, or the sends or receives to this peer, from 1
    int32_t tag;  // of the blocks that go to that rank
    // modelled: when this rank is there, and what its group of calls has to do
    double start, work;
};

enum call_state { CALL_QUEUED, CALL_ANNOUNCED, CALL_MOVING, CALL_DONE };

enum { CALL_TOLD = 11 }; // two numbers; of a window, also where its memory is

struct call {
    struct facts facts;
    enum call_state state;
    struct ncclComm *comm;
    const void *sendbuff;
    void *recvbuff;
    char scalar[8];            // of PRE_MUL_SUM, as it is in memory
    const void *device_scalar; // read when the call starts
    int64_t told[CALL_TOLD];   // to the others, by a call that ranks make together
    bool *excluded;            // CALL_SHRINK: ranks that do not make it
    int window, signal;        // CALL_PUT, CALL_SIGNAL: number of the window, and sigIdx
    size_t offset;             // CALL_PUT: in the peer's window
    ncclWaitSignalDesc_t *waits; // CALL_WAIT_SIGNAL
    int nwaits;
    cudaEvent_t launched;  // recorded when it is queued; may be NULL
    struct stream *stream; // that it was given
    struct call *next;     // of its group
    struct call *next_running;
    // while it runs
    int missing;        // ranks whose announcement has not come
    bool *heard;        // which have
    bool differ;        // they do not agree: it will never end
    int *tags;          // of the blocks to each rank, and from each rank
    char *payloads;     // what came from the others, to be added up or passed on
    bool receiving;     // from the others, who have announced the same
    bool summed;        // (all-)reduce: this rank's part of the sums is made
    void *contribution; // what this rank brings, where that is not sendbuff itself
    void *result;       // where the sums are made, where that is not recvbuff itself
    struct transfers transfers;
    struct memory *pinned[2];
    double start, work; // modelled: of the rank that came last, and that has most to do
};

static inline bool point_to_point(int kind) {
    return kind == CALL_SEND || kind == CALL_RECV;
}

/* Made by ranks together, on no stream: it moves no data of the program's. */
static inline bool together(int kind) {
    return kind >= CALL_SPLIT && kind <= CALL_SUSPEND;
}

static inline bool one_sided(int kind) {
    return kind >= CALL_PUT && kind <= CALL_WAIT_SIGNAL;
}

struct call *call_create(struct ncclComm *comm, int kind);
struct call *call_copy(const struct call *call);
size_t call_sends(const struct call *call);    // of sendbuff; 0 where it is not used
size_t call_receives(const struct call *call); // of recvbuff; 0 where it is not used
void call_number(struct call *call);           // it takes its turn

/* Whether a GPU could use its buffers. */
bool call_usable(const struct call *call);
bool call_advance(struct call *call); // true if it got further
void call_release(struct call *call); // done or not

void exchange_start(void);
/* What came for `comm` from a put or a signal; set by onesided.c. */
extern void (*exchange_put)(struct ncclComm *comm, const struct facts *facts,
                            const char *payload);
/* Tells rank `facts->to` of something that it does not answer. */
void exchange_tell(struct ncclComm *comm, struct facts *facts, const void *payload,
                   size_t bytes);
/* Takes the payload of what another rank has told with this kind, or leaves it there as
 * well; false: nothing. */
bool exchange_told(struct ncclComm *comm, int kind, void *payload, size_t bytes,
                   bool stays);
/* The communicator is ready: what came for it before that is taken in. */
void exchange_adopt(struct ncclComm *comm);
/* Tells the other ranks that this one has given `comm` up, and when. */
void exchange_leave(struct ncclComm *comm, double time);

#endif
