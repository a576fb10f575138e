/*
 * neighbours.h: the processes of one machine, as far as they know of one another.
 */
#ifndef NEIGHBOURS_H
#define NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

/* MPI has started: they share memory from now on. */
void neighbours_share(void);
/* The same without MPI, in each round of the helper; `job`: a number of this run alone.
 */
void neighbours_share_over_tcp(uint64_t job, int rank, int nranks);
void neighbours_need_no_name(void); // of it: this process is about to end

/* What several of them find is told by one. Whether this process is the first to say it;
 * `alone`: the answer where nothing is shared. */
enum neighbours_word {
    NEIGHBOURS_REPORT,
    NEIGHBOURS_GIVE_UP,
    NEIGHBOURS_FAILS,
    NEIGHBOURS_WORDS
};
bool neighbours_first(enum neighbours_word word, bool alone);

/* The same for what is said and goes on; key 0: each time. */
bool neighbours_new(uint64_t key);
bool neighbours_said(uint64_t key, bool now); // whether it is; or it is from now on

/* A communicator is aborted at this line; 0: where one of them has done that, or 0. */
uint64_t neighbours_aborted(void *self, uint64_t comm, uint64_t site);

/* Machines speak in turn: how many seconds this one waits, which has rank `rank`. */
double neighbours_turn(int rank, int nranks);

/* This process ends well. The last of the machine says what all of them left behind,
 * which calls failed, and whether all have copied to the host what nothing had written.
 */
void neighbours_end(void);
/* It ends with an exit code. The first that does says which of its calls failed. */
void neighbours_fails(void);

#endif
