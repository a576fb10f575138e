/*
 * wire.c has the messages between processes, and the blocks of data. MPI carries them, on
 * two communicators of their own; within a process they are copied.
 *
 * MPI Standard, "Point-to-Point Communication": messages from one rank to another stay in
 * order, which is what the counting in exchange.c rests on. A block has a tag that its
 * sender chose and announced, so all NCCL communicators can share one of MPI's.
 */
#include "data/wire.h"

#include "base/hosts.h"

#include "cuda/queue.h"

void (*wire_start)(void);
bool (*wire_alone)(void);

static bool open, closed;
static MPI_Comm messages, blocks;

/* MPI has said that it cannot: nothing can be brought to its end any more. */
static void must(int error, const char *call) {
    if (error == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    PMPI_Error_string(error, text, &length);
    fail("rank %d on %s: %s failed, and with it the NCCL calls that MPI carries: %s",
         job_rank, hosts_name(), call, text);
}

/* --- Start and end ---------------------------------------------------------------- */

static bool poll(void);

void wire_open(void) {
    must(PMPI_Comm_dup(MPI_COMM_WORLD, &messages), "MPI_Comm_dup");
    must(PMPI_Comm_dup(MPI_COMM_WORLD, &blocks), "MPI_Comm_dup");
    PMPI_Comm_set_errhandler(messages, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(blocks, MPI_ERRORS_RETURN);
    must(job_open(messages), "a collective call");
    open = true;
    queue_also(poll);
}

static bool complete(const void *argument) {
    int done;
    must(PMPI_Test(*(MPI_Request *const *)argument, &done, MPI_STATUS_IGNORE),
         "MPI_Ibarrier");
    return done;
}

/* What is queued is done while any process still has something to do. */
void wire_close(void) {
    if (!open)
        return;
    MPI_Request all_here, *request = &all_here;
    must(PMPI_Ibarrier(messages, request), "MPI_Ibarrier");
    wait_until(complete, &request);
    open = false;
    closed = true;
    queue_also(NULL);
}

bool wire_is_open(void) {
    return open;
}

bool wire_reaches(int world) {
    return !closed || world == job_rank;
}

/* --- Messages --------------------------------------------------------------------- */

struct parcel {
    MPI_Request request;
    struct parcel *next;
    char data[];
};
static struct parcel *under_way;

static void (*handlers[WIRE_TYPES])(int from, const char *data, size_t bytes);

void wire_listen(int type, void (*handler)(int from, const char *data, size_t bytes)) {
    handlers[type] = handler;
}

static void collect(void) {
    for (struct parcel **at = &under_way; *at;) {
        struct parcel *parcel = *at;
        int sent;
        must(PMPI_Test(&parcel->request, &sent, MPI_STATUS_IGNORE), "MPI_Isend");
        if (!sent) {
            at = &parcel->next;
            continue;
        }
        *at = parcel->next;
        free(parcel);
    }
}

void wire_send(int world, int type, const void *head, size_t head_bytes,
               const void *payload, size_t bytes) {
    struct parcel *parcel = base_grow(NULL, sizeof *parcel + head_bytes + bytes);
    memcpy(parcel->data, head, head_bytes);
    if (bytes)
        memcpy(parcel->data + head_bytes, payload, bytes);
    int sent = world == job_rank || !open;
    if (world == job_rank) {
        handlers[type](world, parcel->data, head_bytes + bytes);
    } else if (open) {
        must(PMPI_Isend(parcel->data, (int)(head_bytes + bytes), MPI_BYTE, world, type,
                        messages, &parcel->request),
             "MPI_Isend");
        must(PMPI_Test(&parcel->request, &sent, MPI_STATUS_IGNORE), "MPI_Isend");
    }
    if (sent) {
        free(parcel);
        return;
    }
    parcel->next = under_way;
    under_way = parcel;
}

static void check_abandoned(void);

/* One message at a time: a look that finds nothing lets other processes have the core,
 * and this one may have all that it needs. */
static bool poll(void) {
    static char *buffer;
    static size_t capacity;
    int there, bytes;
    MPI_Message message;
    MPI_Status status;
    if (under_way)
        collect();
    check_abandoned();
    must(PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, messages, &there, &message, &status),
         "MPI_Improbe");
    if (!there)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if ((size_t)bytes > capacity) {
        capacity = (size_t)bytes + 4096;
        buffer = base_grow(buffer, capacity);
    }
    must(PMPI_Mrecv(buffer, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    handlers[status.MPI_TAG](status.MPI_SOURCE, buffer, (size_t)bytes);
    return true;
}

/* --- Blocks within this process --------------------------------------------------- */

struct block { // that waits for the other half of its pair
    struct block *next;
    struct transfers *owner;
    int tag;
    const void *from; // NULL: it is to be received
    void *to;
};
static struct block *blocks_here;

static void meet(struct transfers *transfers, int tag, const void *from, void *to,
                 size_t bytes) {
    struct block **at = &blocks_here;
    while (*at && ((*at)->tag != tag || !(*at)->from == !from))
        at = &(*at)->next;
    struct block *other = *at;
    if (other) {
        memmove(to ? to : other->to, from ? from : other->from, bytes);
        other->owner->local--;
        *at = other->next;
        free(other);
        return;
    }
    *at = base_alloc(sizeof **at);
    **at = (struct block){NULL, transfers, tag, from, to};
    transfers->local++;
}

/* --- Blocks between processes ----------------------------------------------------- */

enum { TAGS = 32000, MOST = 1 << 30 }; // MPI has at least 32767; bytes in one message

int wire_tag(int world) {
    static int *newest;
    static int known;
    if (known < job_size) {
        newest = base_grow(newest, (size_t)job_size * sizeof *newest);
        memset(newest + known, 0, (size_t)(job_size - known) * sizeof *newest);
        known = job_size;
    }
    return newest[world] = (newest[world] + 1) % TAGS;
}

static MPI_Request *new_request(struct transfers *transfers, bool receives) {
    if (transfers->n == transfers->room) {
        transfers->room = transfers->room ? 2 * transfers->room : 8;
        transfers->requests =
            base_grow(transfers->requests, (size_t)transfers->room * sizeof(MPI_Request));
        transfers->receives =
            base_grow(transfers->receives, (size_t)transfers->room * sizeof(bool));
    }
    transfers->receives[transfers->n] = receives;
    return &transfers->requests[transfers->n++];
}

void wire_put(struct transfers *transfers, int world, int tag, const void *from,
              size_t bytes) {
    if (world == job_rank) {
        meet(transfers, tag, from, NULL, bytes);
        return;
    }
    for (const char *at = from; bytes > 0;) {
        size_t piece = bytes < MOST ? bytes : MOST;
        must(PMPI_Isend(at, (int)piece, MPI_BYTE, world, tag, blocks,
                        new_request(transfers, false)),
             "MPI_Isend");
        at += piece;
        bytes -= piece;
    }
}

void wire_take(struct transfers *transfers, int world, int tag, void *to, size_t bytes) {
    if (world == job_rank) {
        meet(transfers, tag, NULL, to, bytes);
        return;
    }
    for (char *at = to; bytes > 0;) {
        size_t piece = bytes < MOST ? bytes : MOST;
        must(PMPI_Irecv(at, (int)piece, MPI_BYTE, world, tag, blocks,
                        new_request(transfers, true)),
             "MPI_Irecv");
        at += piece;
        bytes -= piece;
    }
}

bool wire_moved(struct transfers *transfers) {
    int all = 1;
    if (transfers->n > 0)
        must(PMPI_Testall(transfers->n, transfers->requests, &all, MPI_STATUSES_IGNORE),
             "MPI_Testall");
    if (all)
        transfers->n = 0;
    return all && transfers->local == 0;
}

void wire_forget(struct transfers *transfers) {
    free(transfers->requests);
    free(transfers->receives);
    *transfers = (struct transfers){0};
}

/* --- Blocks that nobody waits for any more ---------------------------------------- */

struct abandoned {
    struct abandoned *next;
    struct transfers transfers;
    void (*end)(void *owner);
    void *owner;
};
static struct abandoned *abandoned;

void wire_abandon(struct transfers *transfers, void (*end)(void *owner), void *owner) {
    for (struct block **at = &blocks_here; *at;) {
        struct block *block = *at;
        if (block->owner != transfers) {
            at = &block->next;
            continue;
        }
        *at = block->next;
        free(block);
    }
    transfers->local = 0;
    for (int i = 0; i < transfers->n && open; i++)
        if (transfers->receives[i] && transfers->requests[i] != MPI_REQUEST_NULL)
            PMPI_Cancel(&transfers->requests[i]);
    struct abandoned *mine = base_alloc(sizeof *mine);
    *mine = (struct abandoned){abandoned, *transfers, end, owner};
    abandoned = mine;
    *transfers = (struct transfers){0};
    check_abandoned();
}

static void check_abandoned(void) {
    for (struct abandoned **at = &abandoned; *at && open;) {
        struct abandoned *mine = *at;
        if (!wire_moved(&mine->transfers)) {
            at = &mine->next;
            continue;
        }
        *at = mine->next;
        wire_forget(&mine->transfers);
        mine->end(mine->owner);
        free(mine);
    }
}
