/*
 * links.h: what carries parcels from judge to judge: MPI (link_mpi.c) or, where MPI was
 * not started, TCP (link_tcp.c). One of them is open at a time, and the helper thread
 * uses it.
 */
#ifndef LINKS_H
#define LINKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct parcel {
    struct parcel *next;
    MPI_Request request;
    int to;
    size_t bytes;
    char data[];
};

struct link {
    void (*sends)(struct parcel *parcel); // to another rank; the link frees it
    /* Moves on what is on its way, and delivers what has come. False: the judges can't
     * talk now. */
    bool (*moves)(void);
    bool (*is_moving)(void); // a parcel is on its way: the next round comes soon
    /* The end, in three steps: all ranks are as far, while the helper still runs; this
     * thread takes what is still to come; this rank leaves. */
    void (*meets)(void);
    void (*takes_rest)(void);
    void (*leaves)(void);
    void (*ends_job)(void); // a report does: all others are told
};

/* MPI has started, and all ranks are there: they make a communicator of their own. */
void link_mpi_opens(void);
void link_mpi_closes(void);
/* As tcp_begins(). */
bool link_tcp_opens(const struct sockaddr *address, uint64_t token, int rank, int nranks,
                    bool is_hub);

#endif
