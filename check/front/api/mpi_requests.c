/*
 * mpi_requests.c: MPI's requests: whom they wait for, and which buffers MPI has until
 * they are completed.
 *
 * "A nonblocking send call indicates that the system may start copying data out of the
 * send buffer. The sender should not modify any part of the send buffer" until it is
 * completed; of a receive's, "no part should be accessed" (MPI 4.1, 3.7.2).
 */
#define _GNU_SOURCE
#include "mpi_requests.h"

#include "handles.h"
#include "mpi_waits.h"

struct request {
    MPI_Comm comm;
    int peer; // of it; or JUDGE_…
    struct mpi_buffer *buffers;
    int nbuffers;
    struct request *next; // with the same handle: MPI has one for all that are complete
};
static struct map requests; // guarded by the judge's lock

static const void *key_of(MPI_Request request) {
    uintptr_t key = 0;
    memcpy(&key, &request, sizeof request < sizeof key ? sizeof request : sizeof key);
    return (const void *)key;
}

/* These are ours. */
#define OWN(name) \
    static __typeof__(MPI_##name) own_##name __attribute__((alias("MPI_" #name)));
#define OWN_NAME(name) (mpi_function) own_##name,
MPI_COMPLETING(OWN)
static const mpi_function own_completing[] = {MPI_COMPLETING(OWN_NAME)};
static bool completions_come_here;

void requests_called(const mpi_function *functions) {
    completions_come_here = memcmp(functions, own_completing, sizeof own_completing) == 0;
}

static void lend(struct judge *j, struct request *r, struct judge_at at) {
    for (int i = 0; i < r->nbuffers && completions_come_here; i++)
        if (r->buffers[i].bytes > 0)
            r->buffers[i].lent = judge_memory_lent(
                j, r->buffers[i].start, r->buffers[i].bytes, r->buffers[i].write, at);
}

static void take_back(struct judge *j, struct request *r) {
    for (int i = 0; i < r->nbuffers; i++) {
        judge_memory_back(j, r->buffers[i].lent);
        r->buffers[i].lent = -1; // the number may be given out again
    }
}

void mpi_opens(const struct judge_at *at, MPI_Request handle, MPI_Comm comm, int peer) {
    if (handle == MPI_REQUEST_NULL || !front_on) {
        mpi_gives_back();
        return;
    }
    struct request *r = must_alloc(sizeof *r);
    *r = (struct request){.comm = comm, .peer = peer};
    r->buffers = mpi_hands_over(&r->nbuffers);
    struct judge *j = front_in();
    r->next = table_get(&requests, key_of(handle));
    table_put(&requests, key_of(handle), r);
    lend(j, r, *at);
    mpi_under_way(1);
    front_out();
}

/* Which of several with one handle is completed nobody can tell: one of them is, and what
 * all of them have may be used. One that is `freed` before it is completed goes on
 * unseen.
 */
static void closes(struct judge *j, MPI_Request handle, bool freed) {
    struct request *r = table_get(&requests, key_of(handle));
    if (!r)
        return;
    if (!freed)
        mpi_under_way(-1);
    for (struct request *one = r; one; one = one->next)
        take_back(j, one);
    table_put(&requests, key_of(handle), r->next);
    free(r->buffers);
    free(r);
}

static void completed(MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL || !front_on)
        return;
    TELL(closes, handle, false);
}

static void waits_for(const struct judge_at *at, int n, const MPI_Request *handles) {
    static __thread struct mpi_whom whom;
    bool known = front_on && n <= MPI_WHOM;
    whom.n = 0;
    if (known) {
        front_in();
        for (int i = 0; i < n; i++) {
            const struct request *r = table_get(&requests, key_of(handles[i]));
            if (handles[i] == MPI_REQUEST_NULL)
                continue;
            known &= r && !r->next && r->peer != JUDGE_ANY;
            if (known)
                whom.of[whom.n++] = (struct mpi_of){.comm = r->comm, .peer = r->peer};
        }
        front_leave();
    }
    bool one = known && whom.n == 1 && whom.of[0].peer >= 0;
    mpi_waits(at, known && whom.n > 0 ? &whom : NULL,
              one ? whom.of[0].peer : JUDGE_ONE_OF);
}

/* What they are before: MPI puts MPI_REQUEST_NULL in the place of those that are done. */
enum { FEW = 16 };
struct before {
    MPI_Request few[FEW], *all;
    int n;
};

static void keep(struct before *before, int n, const MPI_Request *handles) {
    before->n = n > 0 ? n : 0;
    before->all = n > FEW ? must_alloc((size_t)n * sizeof *handles) : before->few;
    memcpy(before->all, handles, (size_t)before->n * sizeof *handles);
}

/* Those of these indices are completed; `which` NULL: the first so many. */
static void are_completed(struct before *before, int n, const int *which) {
    for (int i = 0; i < n; i++) {
        int index = which ? which[i] : i;
        if (index >= 0 && index < before->n)
            completed(before->all[index]);
    }
    if (before->all != before->few)
        free(before->all);
}

/* A function that waits for `total` requests, or asks whether they are completed. After
 * it, `there` of them are: those that `which` says, as above. */
#define REQUESTS(name, parameters, waits, total, handles, there, which, ...) \
    int MPI_##name parameters {                                              \
        if (front_depth > 0)                                                 \
            return PMPI_##name(__VA_ARGS__);                                 \
        MPI_HERE;                                                            \
        struct before before;                                                \
        keep(&before, total, handles);                                       \
        if (waits)                                                           \
            waits_for(&at, before.n, before.all);                            \
        int result = CALL(PMPI_##name, __VA_ARGS__);                         \
        if (OVER_STANDIN)                                                    \
            STANDIN(mpi_ended)(before.all, before.n, handles);               \
        if (waits)                                                           \
            mpi_waited();                                                    \
        int done = there;                                                    \
        are_completed(&before, done, which);                                 \
        if (!(waits))                                                        \
            mpi_asked(&at, result != MPI_SUCCESS || done > 0);               \
        return result;                                                       \
    }

REQUESTS(Wait, (MPI_Request * request, MPI_Status *status), true, 1, request, 1, NULL,
         request, status)
REQUESTS(Waitall, (int count, MPI_Request handles[], MPI_Status statuses[]), true, count,
         handles, count, NULL, count, handles, statuses)
REQUESTS(Waitany, (int count, MPI_Request handles[], int *index, MPI_Status *status),
         true, count, handles, 1, index, count, handles, index, status)
REQUESTS(Waitsome,
         (int count, MPI_Request handles[], int *some, int indices[],
          MPI_Status statuses[]),
         true, count, handles, *some, indices, count, handles, some, indices, statuses)
REQUESTS(Test, (MPI_Request * request, int *flag, MPI_Status *status), false, 1, request,
         *flag != 0, NULL, request, flag, status)
REQUESTS(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), false,
         1, &request, *flag != 0, NULL, request, flag, status)
REQUESTS(Testall, (int count, MPI_Request handles[], int *flag, MPI_Status statuses[]),
         false, count, handles, *flag ? count : 0, NULL, count, handles, flag, statuses)
REQUESTS(Testany,
         (int count, MPI_Request handles[], int *index, int *flag, MPI_Status *status),
         false, count, handles, *flag ? 1 : 0, index, count, handles, index, flag, status)
REQUESTS(Testsome,
         (int count, MPI_Request handles[], int *some, int indices[],
          MPI_Status statuses[]),
         false, count, handles, *some, indices, count, handles, some, indices, statuses)

int MPI_Request_free(MPI_Request *request) {
    if (front_depth == 0 && front_on && *request != MPI_REQUEST_NULL)
        TELL(closes, *request, true);
    return CALL(PMPI_Request_free, request);
}

/* Its requests go on, and nobody can be asked any more who its ranks are. */
int MPI_Comm_free(MPI_Comm *comm) {
    if (front_depth == 0 && front_on) {
        front_in();
        for (size_t i = 0; i < requests.size; i++)
            for (struct request *r = requests.at[i].value; r; r = r->next)
                if (r->comm == *comm)
                    r->peer = JUDGE_ANY;
        front_leave();
    }
    // Not CALL: what belongs to the communicator (attributes) the program releases here.
    return PMPI_Comm_free(comm);
}

/* A request that is started again and again is not known: from then on the process may do
 * more in MPI than anybody can tell. */
int MPI_Start(MPI_Request *request) {
    if (front_depth == 0)
        mpi_under_way(1);
    return CALL(PMPI_Start, request);
}

int MPI_Startall(int count, MPI_Request handles[]) {
    if (front_depth == 0)
        mpi_under_way(1);
    return CALL(PMPI_Startall, count, handles);
}
