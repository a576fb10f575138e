/*
 * join.h: how processes that no launcher of MPI has started get into one MPI job.
 *
 * The process that made the unique id listens for those that have it (launch.c). When all
 * ranks have come, it has mpirun start as many processes as there are to be, from the
 * same program. Those only hold a seat: each hands over what mpirun told it in its
 * environment, and stays until the process that took its place has ended. So that one
 * starts MPI as if mpirun had started it.
 */
#ifndef CPU_JOIN_H
#define CPU_JOIN_H

#include "base/base.h"

#define JOIN_HOLD "NCCL_CPU_SEAT" // set for those that hold a seat: whose usher

enum { JOIN_TEXT = 240, JOIN_ENVIRONMENT = 1 << 16 };

struct hail { // to the usher, from a rank or from one that holds a seat
    uint64_t id, process;
    int32_t rank, nranks; // of the communicator; of the MPI job
    int32_t seat;         // it holds one
    int32_t has_mpi;      // that the program has started
    int32_t grows;        // the id is for ncclCommGrow
    int32_t twice;        // another thread of the process has called itself that, too
    int32_t lost;         // the id is not this run's: nobody who has it will come
};

enum join_answer {
    JOIN_WAIT,
    JOIN_ALONE,
    JOIN_TAKE,
    JOIN_HAVE,
    JOIN_NONE,
    JOIN_MISUSED // none, because of what the ranks say
};

struct answer { // of the usher: to JOIN_TAKE a descriptor belongs, of who holds the seat
    int32_t what;
    char text[JOIN_TEXT]; // JOIN_NONE, JOIN_MISUSED: why
};

/* Process `maker` listens at a socket of this name; both return -1 where that fails. */
int join_listen(uint64_t maker);
int join_connect(uint64_t maker);
uint64_t join_number(const char *name);
/* The name for those whom a loop, or torchrun, has started together; 0: it is not known.
 */
uint64_t join_family(void);
bool join_send(int socket, const void *data, size_t bytes, int descriptor); // -1: none
long join_receive(int socket, void *data, size_t bytes, int *descriptor);

/* This process makes unique ids: whoever has one may come. */
void launch_begin(uint64_t maker);

/* For one that was started to hold a seat: does not return then. */
void join_hold(void);

/* A rank of this process wants to meet others by the id that `maker` made. Nothing waits
 * here, and a rank may say so again, though not by another thread that is `called`. */
void join_ask(uint64_t maker, struct hail hail, bool called);
bool join_settled(const void *unused); // whether all that was asked has been answered
bool join_taken(void);                 // MPI can be started
uint64_t join_id(void);                // the id that they have met by; 0: none
int join_nranks(void);                 // of that communicator; after join_taken()
const char *join_refused(uint64_t id); // why it cannot be; NULL: it can
bool join_misused(uint64_t id);        // JOIN_MISUSED
void join_say(const char *why);        // to the user, since few programs do
/* The process is about to end, and how: with this exit code, or after it has said why to
 * the user. (Or JOIN_SILENT, which it cannot say.) */
enum { JOIN_SAID = -1, JOIN_SILENT = -2 };
void join_leave(int how);

#endif
