/*
 * timeline.h: what happened when, on every stream and on the host, noted for the file
 * that NCCL_TIMELINE names; and NVTX ranges, which profilers show.
 *
 * The same places of the front that tell the judge of a call note it here. An operation
 * lies between two CUDA events of the stream it is put into; nothing here waits for a
 * device while the program runs.
 *
 *   timeline.c  what the front tells
 *   tracks.c    times of what is in streams
 *   notes.c     the notes of this rank
 *   gather.c    brings those of all ranks to rank 0
 *   trace.c     makes the file of them
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include "handles.h"
#include "trace.h"

/* Which of the two; 0: neither, and none of the functions below is called. */
enum { TIMELINE_FILE = 1, TIMELINE_RANGES = 2 };
extern int timeline_on;

struct timeline_op {
    const char *name; // that the file shows
    struct judge_at at;
    bool waits; // the host, inside the call, for the operation or for what is before it
    bool may_return_at_once;
    bool done;    // the operation is over when the call returns
    size_t bytes; // 0: not known
    // Of NCCL's calls; trace.h says what they are
    bool collective;
    int number, rank, type, redop, root, peer;
    uint64_t comm, count;
};

/* Round the call that puts it into the stream; -1: the current device. The end is given
 * what the call returned: 0 is success. */
struct span;
struct span *timeline_begins(const struct timeline_op *op, cudaStream_t stream,
                             int device);
void timeline_ends(struct span *span, int result);

/* `op` is evaluated only if there is a timeline. */
#define ON_TIMELINE(op, stream, device, call)                               \
    ({                                                                      \
        struct span *call_span =                                            \
            timeline_on ? timeline_begins((op), (stream), (device)) : NULL; \
        __typeof__(call) timed_result = (call);                             \
        if (call_span)                                                      \
            timeline_ends(call_span, (int)timed_result);                    \
        timed_result;                                                       \
    })

/* NCCL's calls: they wait for the end of the group, or for timeline_group_ends where
 * there is none. */
void timeline_adds(const struct timeline_op *op, cudaStream_t stream, int device);
void timeline_adds_not(void); // the newest one has failed
void timeline_group_begins(struct judge_at at);
/* `returned_early`: with ncclInProgress (blocking = 0); timeline_comm_ready says when the
 * calls are in their streams. */
void timeline_group_ends(int result, bool returned_early);
void timeline_comm_ready(uint64_t comm);
/* A call that all ranks of a communicator make, this one as `rank`, and that is none in a
 * stream: the others are counted with it, as in the reports. */
void timeline_counts(uint64_t comm, int rank);

/* What a call waits for: what is in a stream, or on a device, another rank of the world,
 * all ranks of an MPI communicator (`group`: the same number on all of them). */
struct timeline_wait {
    struct judge_at at;
    bool on_stream, on_device;
    bool may_return_at_once;
    cudaStream_t stream;
    int device; // -1: the current one
    int world;  // -1: none
    uint64_t group;
};
void timeline_waits(const struct timeline_wait *wait);
void timeline_waited(void);

#define HOST_WAITS(wait, call)                  \
    ({                                          \
        if (timeline_on)                        \
            timeline_waits(wait);               \
        __typeof__(call) timed_result = (call); \
        if (timeline_on)                        \
            timeline_waited();                  \
        timed_result;                           \
    })

void timeline_start(void); // reads the environment
/* A device that the program is about to use: its clock is compared with the host's. */
void timeline_device(void);
void timeline_device_reset(void); // of the current one, when all of it is over
/* MPI has started; what rank 0 was told holds for all. */
void timeline_world(int rank, int nranks, const char *host, int on);
void timeline_gather(void); // all ranks together: rank 0 writes the file
/* The same without MPI, for processes of one machine: each leaves its part in a file
 * beside, and rank 0 takes them all. */
void timeline_gather_by_files(int rank, int nranks);
void timeline_alone(void); // this process's part only
/* The process is about to be ended, by this thread: nothing may hold it up. `ask`: the
 * other ranks answer if they can, those whose helper calls the second now and then. */
void timeline_dies(bool ask);
void timeline_asked(void);
void timeline_forked(void);

#endif
