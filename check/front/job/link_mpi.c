/*
 * link_mpi.c: parcels over an MPI communicator of the judges' own. MPI Standard, "MPI and
 * Threads" (MPI_THREAD_MULTIPLE).
 */
#include "base/base.h"
#include "talk.h"

enum { PARCEL = 1 }; // the tag
static MPI_Comm control = MPI_COMM_NULL;
static struct parcel *under_way;
static int *sent,
    *received; // parcels, per rank; those of a rank to itself are not counted

static void sends(struct parcel *parcel) {
    PMPI_Isend(parcel->data, (int)parcel->bytes, MPI_BYTE, parcel->to, PARCEL, control,
               &parcel->request);
    sent[parcel->to]++;
    parcel->next = under_way;
    under_way = parcel;
}

static void free_sent(void) {
    for (struct parcel **at = &under_way; *at;) {
        struct parcel *parcel = *at;
        int there;
        PMPI_Test(&parcel->request, &there, MPI_STATUS_IGNORE);
        if (!there) {
            at = &parcel->next;
            continue;
        }
        *at = parcel->next;
        free(parcel);
    }
}

/* A parcel on its way here. A long one needs the sender's help, and a thread that waits
 * for that inside MPI takes the program's processor: it is asked for instead. */
struct incoming {
    struct incoming *next;
    MPI_Request request;
    int from, bytes;
    char data[];
};
static struct incoming *coming, **coming_end = &coming;

static void take_parcels(void) {
    for (;;) {
        int there, bytes;
        MPI_Message message;
        MPI_Status status;
        PMPI_Improbe(MPI_ANY_SOURCE, PARCEL, control, &there, &message, &status);
        if (!there)
            break;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        struct incoming *new = must_alloc(sizeof *new + (size_t)bytes);
        *new = (struct incoming){.from = status.MPI_SOURCE, .bytes = bytes};
        PMPI_Imrecv(new->data, bytes, MPI_BYTE, &message, &new->request);
        *coming_end = new;
        coming_end = &new->next;
    }
    while (coming) { // in their order
        struct incoming *first = coming;
        int there;
        PMPI_Test(&first->request, &there, MPI_STATUS_IGNORE);
        if (!there)
            return;
        if (!(coming = first->next))
            coming_end = &coming;
        received[first->from]++;
        talk_delivers(first->from, first->data, (size_t)first->bytes);
        free(first);
    }
}

static bool moves(void) {
    free_sent();
    take_parcels();
    return true;
}

static bool is_moving(void) {
    return coming || under_way;
}

static void complete(MPI_Request *request, bool helper_does_the_rest) {
    for (int done = 0; PMPI_Test(request, &done, MPI_STATUS_IGNORE), !done;
         talk_pause(0.0005))
        if (!helper_does_the_rest)
            take_parcels();
}

static void meets(void) {
    MPI_Request request;
    PMPI_Ibarrier(control, &request);
    complete(&request, true);
}

/* Nothing waits any more: what is still to be told are calls, to be compared. */
static void takes_rest(void) {
    MPI_Request request;
    int *expected = must_alloc((size_t)front_job.nranks * sizeof *expected);
    int *mine = must_alloc((size_t)front_job.nranks * sizeof *mine);
    memcpy(mine, sent, (size_t)front_job.nranks * sizeof *mine);
    PMPI_Ialltoall(mine, 1, MPI_INT, expected, 1, MPI_INT, control, &request);
    complete(&request, false);
    for (int from = 0; from < front_job.nranks; from++)
        for (; received[from] < expected[from]; talk_pause(0.0002))
            take_parcels();
    free(expected);
    free(mine);
}

static void leaves(void) {
    MPI_Request request;
    PMPI_Ibarrier(control, &request);
    complete(&request, false);
    while (under_way) // received by now
        free_sent();
}

static void ends_job(void) {
    // MPI_Abort does
}

void link_mpi_opens(void) {
    static const struct link mpi = {sends,      moves,  is_moving, meets,
                                    takes_rest, leaves, ends_job};
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    PMPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN);
    sent = must_alloc((size_t)front_job.nranks * sizeof *sent);
    received = must_alloc((size_t)front_job.nranks * sizeof *received);
    talk_over(&mpi);
}

void link_mpi_closes(void) {
    if (control == MPI_COMM_NULL)
        return;
    talk_over(NULL);
    PMPI_Comm_free(&control);
}
