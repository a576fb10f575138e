/*
 * clock.h: modelled time: when an operation starts, and how long it takes on a machine
 * that is not here. The queue asks; the data is moved all the same.
 *
 * The same digits on every run: a modelled time depends on what the program did, in its
 * order, and on the times that other ranks tell. It never depends on when something
 * really happened. So
 *   - the host's time passes in calls only: each costs what the machine says, and a wait
 *     brings it to the end of what it waited for;
 *   - an operation starts when its stream, the events before it, its call and the last of
 *     its ranks are there;
 *   - operations of one GPU that use the same thing at the same time share it.
 */
#ifndef CPU_CLOCK_H
#define CPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times are seconds since MPI's start, on the machine that NCCL_CPU_CLOCK names. */
extern bool clock_on;
const char *clock_machine(void);
/* Reads the machine of this name, or path; "" is none. `speaks`: this process says what
 * is wrong with it. A process with a wrong one ends with exit code 2. */
void clock_start(const char *asked, bool speaks);
const char *machines_folder(void); // where they lie: machines.c
/* On which node each process is. Without it, as many on each as the machine has GPUs. */
void clock_nodes(const int *nodes, int n);

/* --- What an operation costs ------------------------------------------------------ */

/* What operations of one GPU share when they run at the same time. */
enum { USES_LINK = 1, USES_HOST = 2, USES_UNITS = 4 };

struct cost {
    double host;    // that the call keeps the host
    double pace;    // the same, where the host was what operations in a row waited for
    double latency; // of the stream, before anything moves
    double work;    // of the stream, if it shares with nobody
    double tail;   // until the last rank is done; the next of its kind starts before that
    double part;   // of what it uses: two that use half of it each are not slower
    double units;  // multiprocessors that it takes away from computations
    double blocks; // of a product; 0: so many that their number does not count
    int uses;
    bool as_in_graph; // the latency is that of a graph's operation already
};

enum clock_way { WAY_SET, WAY_WITHIN, WAY_HOST, WAY_PEER, WAY_STAGED };
struct cost clock_of_copy(enum clock_way way, size_t bytes);
/* What cuBLAS does: so many additions and multiplications, on so many bytes; of a product
 * so many numbers of its result. */
struct cost clock_compute(double flops, double bytes, double result);

struct ranks {          // of a communicator
    int n, nodes, most; // ranks on one node
    int ctas;           // that it may take; 0: as many as NCCL takes
    unsigned ways;      // that NCCL_ALGO and NCCL_PROTO leave; 0: NCCL chooses
};
enum { CLOCK_WAYS = 6 }; // two algorithms, three protocols
unsigned clock_ways(void);
struct ranks clock_ranks(const int *world, int n);

enum clock_op {
    OP_BROADCAST,
    OP_REDUCE,
    OP_ALL_REDUCE,
    OP_ALL_GATHER,
    OP_REDUCE_SCATTER,
    OP_ALL_TO_ALL,
    OP_SEND_RECV,
    OP_GATHER, // or scatter
    CLOCK_OPS
};
/* `bytes` as nccl-tests counts them: of the larger buffer. Sends and receives: of the
 * direction with more, to or from `peers` ranks, `far` if any is on another node.
 * `direct`: its buffers are registered. */
struct cost clock_nccl(enum clock_op op, const struct ranks *ranks, double bytes,
                       int peers, bool far, bool direct);
/* Sends and receives of a group: in one direction, and in the other, which has less.
 * `own`: also to itself. */
struct cost clock_messages(const struct ranks *ranks, double bytes, double back,
                           int peers, bool own, bool far, bool direct);
void clock_add(struct cost *group, const struct cost *call); // of the same group
enum clock_launch { LAUNCH_PLAIN, LAUNCH_SENDS, LAUNCH_ONE_SIDED };
/* The host's, of a group of NCCL's calls. */
double clock_launch(int calls, enum clock_launch kind, bool direct);
double clock_graph(void);               // the host's, of launching a graph
void clock_recorded(struct cost *cost); // of an operation of NCCL in a graph
double clock_event(void); // the host's, of recording one, or of waiting for one
int clock_units(void);    // multiprocessors of a GPU
bool clock_far(int world, int other); // they are on two nodes

/* --- The host --------------------------------------------------------------------- */

double clock_host(void);            // what it is by the host's clock
void clock_host_until(double time); // it waited
void clock_host_spends(double seconds);
void clock_host_polls(double end); // asks for what ends then, and asks again
double clock_wtime(void);          // MPI_Wtime
double clock_mpi(int nranks);      // an MPI call of so many ranks

/* --- Operations that share -------------------------------------------------------- */

/* What is known of an operation that uses something; in the order in which the host
 * queued them. */
struct flow {
    struct flow *next;
    int device, stream;
    struct cost cost;
    double queued; // by the host
    double from;   // it holds multiprocessors from here on,
    double start, end;
    bool known;
    double asked; // by the real clock: since when others wait for this to be known
};
struct flow *clock_queue(int device, int stream, const struct cost *cost);
/* From `from` on it is in its stream, and at `start` all ranks are there. False: that
 * depends on earlier ones, which are not known yet; ask again. */
bool clock_flow(struct flow *flow, double from, double start, const struct cost *cost,
                double *end);

#endif
