/*
 * link_tcp.c: parcels over TCP (tcp.c), where MPI was not started.
 */
#include "neighbours.h"
#include "talk.h"
#include "tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEETING_SECONDS = 120 }; // ranks of Python may start slowly
enum { SECOND = 100 };          // rounds at the end
static bool meeting = true;     // not all ranks are there
static int quiet;               // rounds since another rank has told this one anything

static void sends(struct parcel *parcel) {
    tcp_sends(parcel->to, parcel->data, parcel->bytes);
    free(parcel);
}

static bool moves(void) {
    int from, nmissing;
    void *data;
    size_t bytes;
    const enum tcp_state state = tcp_round();
    meeting = state == TCP_MEETS;
    switch (state) {
    case TCP_ALL_HERE: break;
    case TCP_MEETS:
        if (tcp_missing(&nmissing) > MEETING_SECONDS)
            talk_gives_up("the ranks' checks have not found one another over TCP within"
                          " two minutes");
        return false;
    case TCP_LOST:
        if (tcp_lost_rank() >= 0 && !front_job.gave_up)
            fprintf(stderr, "NCCL CHECK: rank %d has gone without a word (killed?)\n",
                    tcp_lost_rank());
        talk_checks_end();
        return false;
    case TCP_ENDED: // by a report, which another rank has printed
        front_job.ending = true;
        _exit(1);
    case TCP_OVER: talk_checks_end(); return false;
    }
    neighbours_share_over_tcp(tcp_job(), front_job.rank, front_job.nranks);
    while (tcp_receives(&from, &data, &bytes)) {
        quiet = 0;
        talk_delivers(from, data, bytes);
        free(data);
    }
    return true;
}

static bool is_moving(void) {
    int nmissing; // what has been found, the kernel moves
    return meeting && tcp_missing(&nmissing) < 10;
}

static void meets(void) {
    // Nobody waits for all: takes_rest() does, at the hub.
}

/* A short program may be over before the ranks have met. Then the hub stays for those who
 * wait for a rank that has left: they tell it so again and again. */
static void takes_rest(void) {
    const double longest = (front_options.timeout + 3) * SECOND;
    quiet = 0;
    for (int i = 0;
         meeting ? i < SECOND : i < longest && quiet < 2 * SECOND && !tcp_alone();
         i++, quiet++) {
        talk_pause(0.01);
        talk_round();
    }
}

static void leaves(void) {
    neighbours_need_no_name();
    tcp_leaves();
    talk_over(NULL);
}

bool link_tcp_opens(const struct sockaddr *address, uint64_t token, int rank, int nranks,
                    bool is_hub) {
    static const struct link tcp = {sends,      moves,  is_moving,   meets,
                                    takes_rest, leaves, tcp_ends_job};
    if (!tcp_begins(address, token, rank, nranks, is_hub))
        return false;
    talk_over(&tcp);
    return true;
}
