/*
 * tracks.h: what happened when in the streams: a track for each.
 */
#ifndef TRACKS_H
#define TRACKS_H

#include "notes.h"

struct timeline_op;

/* What lies between two events of a stream. */
struct span {
    struct span *next;
    int track; // NONE: nothing is recorded, in a capture
    int device;
    cudaStream_t stream;
    cudaEvent_t start, end;
    int first, last; // of its notes
    bool ended;      // `end` is recorded
    bool waits, may_return_at_once;
    bool done;     // when the call returns
    uint64_t comm; // that will say when its end can be recorded (blocking = 0)
};

/* Records the first event. The span has no track where nothing can be recorded. */
void span_opens(struct span *span, cudaStream_t stream, int device);
void span_notes(struct span *span, const struct timeline_op *op, int group);
/* Records the second event. Another thread may read and free the span as soon as that is
 * told. */
void span_closes(struct span *span, int result);

/* With the lock of the notes held. */
int track_of(int number, cudaStream_t stream, int device);
/* Those of a stream (a track's number), or of a device, or NONE, are known to be over. */
void tracks_read(int known_track, int known_device);
/* Reads what is over by now. What is not has a little time: the program may have left it
 * to itself. */
void tracks_read_all(double patience);
void tracks_measure_rates(void); // of the devices' clocks
/* In a thread that is not the program's, device 0 is the current one: to ask CUDA there
 * would make a context on it. */
void tracks_go_to_first(void);
/* All that this rank has noted, without its rank and host; `by` makes a time of the
 * host's one that is the same for all ranks. */
struct trace_part tracks_part(double (*by)(double host_time));

#endif
