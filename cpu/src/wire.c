/*
 * wire.c: announcements between the ranks, on a communicator of their own.
 *
 * MPI Standard, "Point-to-Point Communication": messages from one rank to another stay in
 * order, which is what the counting in check.c and setup.c rests on.
 */
#include "internal.h"

struct parcel {
    MPI_Request request;
    struct parcel *next;
    bool state;
    char data[];
};

static struct parcel *under_way;
static bool state_under_way;

/* Announcements for communicators that this rank has not finished making. */
struct stray {
    struct stray *next;
    size_t bytes;
    char data[];
};
static struct stray *strays;

static void receive(int type, int from, const char *data, size_t bytes) {
    if (type == WIRE_CALL) {
        struct facts facts;
        memcpy(&facts, data, sizeof facts);
        struct ncclComm *comm = comm_by_id(facts.comm);
        if (comm) {
            call_heard(comm, &facts, data + sizeof facts, bytes - sizeof facts);
            return;
        }
        struct stray *stray = must_alloc(sizeof *stray + bytes);
        stray->bytes = bytes;
        memcpy(stray->data, data, bytes);
        struct stray **end = &strays;
        while (*end)
            end = &(*end)->next;
        *end = stray;
    } else if (type == WIRE_STATE) {
        judge_receive(from, data, bytes);
    } else {
        setup_receive(type, from, data, bytes);
    }
}

void wire_adopt(struct ncclComm *comm) {
    for (struct stray **at = &strays; *at;) {
        struct stray *stray = *at;
        struct facts facts;
        memcpy(&facts, stray->data, sizeof facts);
        if (facts.comm != comm->id) {
            at = &stray->next;
            continue;
        }
        *at = stray->next;
        call_heard(comm, &facts, stray->data + sizeof facts, stray->bytes - sizeof facts);
        free(stray);
    }
}

static void collect(void) {
    for (struct parcel **at = &under_way; *at;) {
        struct parcel *parcel = *at;
        int sent;
        PMPI_Test(&parcel->request, &sent, MPI_STATUS_IGNORE);
        if (!sent) {
            at = &parcel->next;
            continue;
        }
        *at = parcel->next;
        if (parcel->state)
            state_under_way = false;
        free(parcel);
    }
}

void wire_send(int world, int type, const void *head, size_t head_bytes,
               const void *payload, size_t bytes) {
    struct parcel *parcel = malloc(sizeof *parcel + head_bytes + bytes);
    if (!parcel)
        abort();
    memcpy(parcel->data, head, head_bytes);
    if (bytes)
        memcpy(parcel->data + head_bytes, payload, bytes);
    if (world == library.world) {
        receive(type, world, parcel->data, head_bytes + bytes);
        free(parcel);
        return;
    }
    parcel->state = type == WIRE_STATE;
    int total = (int)(head_bytes + bytes);
    // A state is sent synchronously: it is complete when it has been received.
    if (parcel->state)
        PMPI_Issend(parcel->data, total, MPI_BYTE, world, type, library.control,
                    &parcel->request);
    else
        PMPI_Isend(parcel->data, total, MPI_BYTE, world, type, library.control,
                   &parcel->request);
    int sent = 0;
    if (!parcel->state)
        PMPI_Test(&parcel->request, &sent, MPI_STATUS_IGNORE);
    if (sent) {
        free(parcel);
        return;
    }
    parcel->next = under_way;
    under_way = parcel;
}

void wire_send_state(const void *data, size_t bytes) {
    if (library.world == 0) {
        judge_receive(0, data, bytes);
        return;
    }
    collect();
    if (state_under_way)
        return;
    state_under_way = true;
    wire_send(0, WIRE_STATE, data, bytes, NULL, 0);
}

/* One message at a time: a look that finds nothing lets other processes have the core,
 * and this rank may have all that it needs. */
bool wire_poll(void) {
    static __thread char *buffer;
    static __thread size_t capacity;
    if (!library.mpi)
        return false;
    if (under_way)
        collect();
    for (;;) {
        int there, bytes;
        MPI_Message message;
        MPI_Status status;
        PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, library.control, &there, &message,
                     &status);
        if (!there)
            return false;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        if ((size_t)bytes > capacity) {
            capacity = (size_t)bytes + 4096;
            free(buffer);
            buffer = must_alloc(capacity);
        }
        PMPI_Mrecv(buffer, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        receive(status.MPI_TAG, status.MPI_SOURCE, buffer, (size_t)bytes);
        if (status.MPI_TAG != WIRE_STATE) {
            library.activity++;
            return true;
        }
    }
}
