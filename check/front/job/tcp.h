/*
 * tcp.h: the way from judge to judge where MPI was not started: over TCP, by way of one
 * process, the hub, to which all others connect.
 *
 * Nothing here blocks: the helper thread looks after it in each of its rounds.
 */
#ifndef TCP_H
#define TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* This process is `rank` of `nranks`, and the hub listens at this address. The port is
 * worked out from the token, which all ranks of the job have and no other job; both sides
 * show it. False: the hub finds no port. */
bool tcp_begins(const struct sockaddr *address, uint64_t token, int rank, int nranks,
                bool is_hub);
bool tcp_runs(void);
bool tcp_runs_here(void); // and this is no child that shares the memory (vfork)

enum tcp_state {
    TCP_MEETS, // not all ranks are there
    TCP_ALL_HERE,
    TCP_LOST,  // a rank has gone without a word
    TCP_ENDED, // a report of another rank has ended the job
    TCP_OVER   // the others have left, as this one is about to
};
/* One round: connects, sends, receives. */
enum tcp_state tcp_round(void);
int tcp_lost_rank(void);    // that has gone; -1: the way to it
uint64_t tcp_job(void);     // the same number on all ranks, and of this run alone
double tcp_missing(int *n); // seconds since it began, while so many ranks are missing

void tcp_sends(int to, const void *data, size_t bytes);
/* The next parcel that has come; the caller frees `data`. */
bool tcp_receives(int *from, void **data, size_t *bytes);
/* All other ranks are told that a report ends the job. */
void tcp_ends_job(void);
/* Nobody needs this process to pass on what they tell one another. */
bool tcp_alone(void);
void tcp_leaves(void); // this rank does
void tcp_forked(void);

#endif
