/* comm.h: communicators: who belongs to them, and how long they live. */
#ifndef CPU_COMM_H
#define CPU_COMM_H

#include "cuda/queue.h"

struct redop { // a reduction that the program made
    int op;    // its number
    bool live;
    ncclDataType_t type;
    bool on_device;
    char value[8];
    const void *scalar;
};

/* A buffer that is registered with a communicator, or a window. */
struct registration {
    /* What kernels see of a window: struct ncclWindow_vidmem in nccl_device.h. `parts`:
     * where they find the parts of the ranks that share this host; NULL: they do not. */
    char **parts;
    int lsa_rank, rank;
    int teammates; // so many parts
    struct registration *next;
    char *buffer;
    size_t bytes;
    bool window, symmetric, live; // live: not deregistered
    int number;                   // among the windows
    uint64_t *sizes; // of all ranks' parts of the window, when they are known
};

struct shrink { // how often ncclCommShrink was called with this list
    struct shrink *next;
    uint32_t list;
    uint32_t calls;
};

struct signals {          // of one peer, with one index
    uint64_t n;           // that have come and were not waited for
    double *times;        // by a modelled clock, when each of them came, in order
    uint64_t first, room; // of `times`
};

struct early { // that came for a call before the call was made; exchange.c knows what
    struct early *next;
};

struct ncclComm {
    uint64_t id; // the same on all its ranks
    int rank, nranks, device;
    int *world; // the process that each of its ranks is in
    enum { JOINING, READY } state;
    ncclResult_t error;                  // that it could not be made,
    char why[256];                       // and why
    struct ncclComm **promised, *parent; // see comm_promise()
    bool blocking;                       // its calls return when they are over
    bool finalized, destroyed, aborted, revoked, suspended;
    bool rma;     // puts and signals can be used
    unsigned era; // what was queued in an earlier one has been dropped
    bool asked; // whether it is over: since it was finalized, ncclCommGetAsyncError said
                // so
    bool *left; // which ranks have finalized, destroyed or aborted it
    unsigned char *told, *came; // see first_call.c: what each rank was told, and has told
    int holds;                  // who may still look at it
    struct stream *own;         // for what the program gives no stream
    struct mark newest;         // of its operations: they follow one another
    struct chain {
        int kind, root;
        double tail;
    } chain;             // modelled: the newest, a reduce or a broadcast: see struct cost
    struct mark leaving; // where it tells the others that it has left
    double born, left_at; // modelled: its last rank came, went
    struct ranks ranks;   // for the modelled clock
    int meetings;         // calls that ranks make together, under way
    uint64_t collectives, splits, windows, suspends; // made so far
    struct shrink *shrinks;                          // made so far
    int entered; // windows that this rank has registered, the newest included
    struct registration *registrations; // buffers and windows
    struct signals *signals;            // that have come, per peer and index
    int nsignals;                       // of one peer
    uint64_t *sends, *receives;         // made so far, per peer
    struct call *running;               // those that are announced, and not done
    struct early *early, *last_early;
    char *scratch; // for one call at a time
    size_t scratch_bytes;
    bool scratch_lent;
    struct redop *redops;
    int nredops;
    struct ncclComm *next;
};

/* The handle of the program holds it. */
struct ncclComm *comm_create(int device, bool blocking);
/* Its members are known: it is ready for use. */
void comm_become(struct ncclComm *comm, uint64_t id, int rank, int nranks,
                 const int *world);
/* It cannot be made. */
void comm_fail(struct ncclComm *comm, ncclResult_t error, const char *why);
/* The program gets its handle at `out` when it is made, or has failed; `parent`, of which
 * it is made, is busy until then. As in NCCL: src/init.cc, ncclCommInitChildComm. */
void comm_promise(struct ncclComm *comm, struct ncclComm *parent, struct ncclComm **out);
/* What was to be made of it will not be. */
void comm_break_promises(struct ncclComm *parent);
/* This process is number `world` of MPI's; what was made before was its own. */
void comm_numbered(int world);
bool comm_any_made(void); // so far, and be it gone
bool comm_connects(void); // there is one whose ranks are in several processes
struct ncclComm *comm_find(uint64_t id, int rank); // ready; NULL: none, or no longer
/* The one that begins like this handle; NULL: there is none, or it is no more. */
struct registration *comm_registered(const struct ncclComm *comm, const void *handle,
                                     bool window);
bool comm_is_window(const void *handle); // of any communicator, and be it deregistered
/* Ranks reach one another's memory in teams of so many: the most such that each team is
 * on one host, every rank in a process of its own. */
int comm_reach(const struct ncclComm *comm);
void comm_close_parts(struct registration *window);
bool comm_is_one(const struct ncclComm *comm); // the program's handle is one
/* What is queued with it ends without being done. */
void comm_drop(struct ncclComm *comm);
void comm_hold(struct ncclComm *comm);
void comm_release(struct ncclComm *comm);

#endif
