/*
 * notes.h: the notes of this rank: what was in its streams, and what its host waited for.
 */
#ifndef NOTES_H
#define NOTES_H

#include "handles.h"
#include "trace.h"

#include <pthread.h>

/* More would be too much for rank 0, which gets those of all. */
enum { MOST_NOTES = 200000, NONE = -1 };
/* For the start of an operation, which counts from its device's base event. */
enum { NOT_BEGUN = -1 };

/* Nothing is called below while a thread has this lock: it might wait there for another
 * thread, which waits for the lock. */
extern pthread_mutex_t notes_lock;
extern struct notes {
    struct entry {
        struct trace_note note;
        int next; // of the same span
    } * at;
    size_t n, room, lost;
    int threads;
} notes;

double real_time(void);       // seconds
double host_time(void);       // the same, or of the modelled clock
const char *clock_name(void); // of that one; NULL: there is none
void nap(void);

/* With the lock held. NONE: there is no more room. */
int notes_add(const struct trace_note *note);
/* How often this was called with these numbers, from 1. With the lock held. */
uint64_t notes_count(uint64_t a, uint64_t b);
void copy_name(char to[TRACE_NAME], const char *from);

/* The calling thread waits in a call. `may_return_at_once`: it is no wait if it was
 * short. */
void host_begins(struct judge_at at, struct trace_note note);
void host_ends(bool may_return_at_once);

#endif
