/*
 * talk.h: this process as one of the job's, and its way to the judges of the others.
 */
#ifndef TALK_H
#define TALK_H

#include "enter.h"
#include "links.h"

#include <stdatomic.h>

extern struct front_job {
    int rank, nranks;
    bool mpi_up, mpi_ended; // MPI was started, and not ended; it was ended
    bool ending;            // a report ends the job
    atomic_bool gave_up;    // the program goes on unchecked, on all ranks
} front_job;

/* The checks cannot go on: says so once, and the program goes on without them. */
void talk_gives_up(const char *why);
/* A call that all ranks make together has failed: the program is likely to end now, and
 * the judges get a second to compare what the ranks did. */
void talk_settles(void);

int talk_launched_as(void); // the rank that the launcher says; 0: it says none
void talk_pause(double seconds);

/* judge_outside.say and .send */
void talk_says(void *self, const char *text, bool end, uint64_t key);
void talk_sends(void *self, int to, const void *data, size_t bytes);
/* Nothing is reported from here on. A timeline goes on. */
void talk_checks_end(void);

/* The judges talk over this link from here on; NULL: over none. Called by the links. */
void talk_over(const struct link *link);
/* For a link: a parcel has come; without bytes, its sender's checks have ended. */
void talk_delivers(int from, const void *data, size_t bytes);
/* One round: what came, what is to be sent, who can go on. Whether more is to be done. */
bool talk_round(void);

/* The thread that carries what the judges tell one another; where it runs already, or the
 * checks are off, nothing happens. */
void talk_helper_begins(void);
void talk_helper_looks(void); // soon
void talk_helper_ends(void);
bool talk_has_helper(void); // the judges talk, on all ranks
/* Stays until all ranks are as far, so that those who wait for this one can be told what
 * it did last; and until all that the judges had to tell one another has come. */
void talk_meets(void);
void talk_leaves_early(void); // with an error: nobody is waited for
void talk_forked(void);

#endif
