/*
 * requests.c: MPI's requests: whom they wait for, and which buffers MPI has until they
 * are completed.
 *
 * "A nonblocking send call indicates that the system may start copying data out of the
 * send buffer. The sender should not modify any part of the send buffer" until it is
 * completed; of a receive's, "no part should be accessed" (MPI 4.1, 3.7.2).
 */
#define _GNU_SOURCE
#include "handles.h"
#include "mpi_front.h"
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

/* --- Requests --------------------------------------------------------------------- */

struct request {
    struct judge_at at;
    MPI_Comm comm;
    MPI_Win win;           // of what belongs to a window,
    MPI_Request of_window; // and may have a request besides
    int peer;              // of it; or JUDGE_…
    bool persistent, active, cancelled;
    struct mpi_buffer *buffers;
    int nbuffers;
    struct mpi_sent sent;      // what it sends,
    struct judge_at sent_at;   // since this call
    struct mpi_sent each_time; // a persistent one
    uint64_t number;           // no other has it
    struct request *next; // with the same handle: MPI has one for all that are complete
};
static struct table requests; // guarded by the judge's lock

static const void *key_of(MPI_Request request) {
    uintptr_t key = 0;
    memcpy(&key, &request, sizeof request < sizeof key ? sizeof request : sizeof key);
    return (const void *)key;
}

/* A program, or a library that stands before this one, may have functions of MPI itself,
 * which call PMPI's: what they complete is not seen here. These are ours. */
#define OWN(name) \
    static __typeof__(MPI_##name) own_##name __attribute__((alias("MPI_" #name)));
#define OWN_NAME(name) (mpi_function) own_##name,
MPI_COMPLETING(OWN)
static const mpi_function own_completing[] = {MPI_COMPLETING(OWN_NAME)};

static bool completions_come_here(void) {
    static int come = -1;
    if (come < 0)
        come = mpi_calls_come_to(own_completing);
    return come;
}

/* Parts of one call that overlap are told of where they are looked at (mpi_apart). */
static bool overlaps_before(const struct request *r, int i) {
    const struct mpi_buffer *mine = &r->buffers[i];
    for (const struct mpi_buffer *b = r->buffers; b < mine; b++)
        if (mpi_overlap(b->start, b->used, mine->start, mine->used))
            return true;
    return false;
}

static void lend(struct judge *j, struct request *r, bool window, struct judge_at at) {
    r->active = true;
    // What lies in the holes of a datatype may be used meanwhile (MPI standard, "Derived
    // Datatypes": a message is the bytes of the type map).
    for (int i = 0; i < r->nbuffers && completions_come_here(); i++)
        if (!overlaps_before(r, i))
            r->buffers[i].lent =
                judge_memory_lent(j, r->buffers[i].start, r->buffers[i].used,
                                  r->buffers[i].write, window, at);
}

/* `given_up`: by this call, and it goes on; call NULL: it is completed. */
static void take_back(struct judge *j, struct request *r, struct judge_at given_up) {
    for (int i = 0; i < r->nbuffers && r->active; i++) {
        if (given_up.call && !r->cancelled)
            judge_memory_given_up(j, r->buffers[i].lent, given_up);
        else
            judge_memory_back(j, r->buffers[i].lent);
        mpi_let_go(j, &r->buffers[i]);
    }
    r->active = false;
}

/* --- Buffers on the stack ----------------------------------------------------------- */

/* Requests of this thread whose buffers are variables of functions that have not returned
 * when they were made. A few: what else there is, nothing is said of. */
enum { PENDING = 8 };
static __thread struct {
    MPI_Request handle;
    uint64_t number;
    const char *buffer;
} pending[PENDING];
static __thread int npending;
static uint64_t newest;

/* `frame`: of the function of MPI; what lies behind it belongs to functions that have
 * called one another. */
static void lies_on_stack(MPI_Request handle, uint64_t number, const char *frame) {
    const char *buffer = mpi_one_buffer();
    if (!buffer || buffer < frame || npending == PENDING || !front_checks ||
        !stacks_own(buffer) || !stacks_own(frame))
        return;
    pending[npending].handle = handle;
    pending[npending].number = number;
    pending[npending++].buffer = buffer;
}

static void stack_is(const char *frame, const struct judge_at *at) {
    for (int i = 0; i < npending; i++) {
        if (pending[i].buffer >= frame || !stacks_own(frame))
            continue;
        struct judge *j = front_in();
        const struct request *r = table_get(&requests, key_of(pending[i].handle));
        if (r && !r->next && r->number == pending[i].number)
            judge_mpi_dead_buffer(j, r->at, *at);
        front_out();
        pending[i--] = pending[--npending];
    }
}

/* Those that are completed. */
static void forget_pending(void) {
    for (int i = 0; i < npending; i++) {
        const struct request *r = table_get(&requests, key_of(pending[i].handle));
        while (r && r->number != pending[i].number)
            r = r->next;
        if (!r)
            pending[i--] = pending[--npending];
    }
}

/* --- Of windows ------------------------------------------------------------------- */

/* What MPI_Put, MPI_Get and MPI_Accumulate have: until the window is next waited for (MPI
 * 4.1, 12.5). Which of its calls completes what depends on the target; any of them is
 * taken for all. */
static struct request *of_windows;

void mpi_window_has(const struct judge_at *at, MPI_Win win, MPI_Request request) {
    int n;
    struct mpi_buffer *buffers = mpi_hands_over(&n);
    if (!buffers)
        return;
    struct request *r = front_alloc(sizeof *r);
    *r = (struct request){
        .at = *at, .win = win, .of_window = request, .buffers = buffers, .nbuffers = n};
    struct judge *j = front_in();
    r->next = of_windows;
    of_windows = r;
    lend(j, r, true, *at);
    front_out();
}

/* Those of the window; or, where it is none, of the request. */
static void window_ends(struct judge *j, MPI_Win win, MPI_Request request) {
    for (struct request **at = &of_windows; *at;) {
        struct request *r = *at;
        if (win != MPI_WIN_NULL ? r->win != win : r->of_window != request) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        take_back(j, r, (struct judge_at){0});
        free(r->buffers);
        free(r);
    }
}

void mpi_window_done(MPI_Win win) {
    if (win == MPI_WIN_NULL)
        return;
    window_ends(front_in(), win, MPI_REQUEST_NULL);
    front_out();
}

/* --- Made, and completed ------------------------------------------------------------ */

void mpi_opens_at(const struct judge_at *at, MPI_Request handle, MPI_Comm comm, int peer,
                  bool persistent, const char *frame) {
    if (handle == MPI_REQUEST_NULL || !front_on) {
        mpi_gives_back();
        return;
    }
    struct request *r = front_alloc(sizeof *r);
    *r =
        (struct request){.at = *at, .comm = comm, .peer = peer, .persistent = persistent};
    r->buffers = mpi_hands_over(&r->nbuffers);
    struct judge *j = front_in();
    r->next = table_get(&requests, key_of(handle));
    table_put(&requests, key_of(handle), r);
    if (persistent)
        for (int i = 0; i < r->nbuffers; i++)
            mpi_let_go(j, &r->buffers[i]);
    else
        lend(j, r, false, *at);
    r->number = ++newest;
    mpi_under_way(1);
    lies_on_stack(handle, r->number, frame);
    front_out();
}

void mpi_sends(MPI_Request handle, const void *buffer, int count, MPI_Datatype type) {
    if (handle == MPI_REQUEST_NULL || !front_checks)
        return;
    struct mpi_sent sent;
    mpi_keep_sent(&sent, buffer, count, type);
    front_in();
    struct request *r = table_get(&requests, key_of(handle));
    if (r && r->persistent)
        r->each_time = sent;
    else if (r) {
        r->sent = sent;
        r->sent_at = r->at;
    }
    front_leave();
}

/* Which of several with one handle is completed nobody can tell: one of them is, and what
 * all of them have may be used. `freed`: by this call; call NULL: it is completed. */
static void closes(struct judge *j, MPI_Request handle, struct judge_at freed) {
    struct request *r = table_get(&requests, key_of(handle));
    if (!r) {
        window_ends(j, MPI_WIN_NULL, handle);
        return;
    }
    if (!freed.call && !r->next && mpi_sent_changed(&r->sent))
        judge_mpi_sent_changed(j, r->sent_at);
    if (r->persistent && !freed.call) {
        take_back(j, r, freed);
        r->sent.bytes = 0;
        return;
    }
    if (!freed.call || (r->persistent && !r->active)) // else it goes on unseen
        mpi_under_way(-1);
    const struct judge_at given_up = r->next ? (struct judge_at){0} : freed;
    for (struct request *one = r; one; one = one->next) {
        take_back(j, one, given_up);
        one->sent.bytes = 0; // it may be changed from now on
    }
    if (r->next)
        table_put(&requests, key_of(handle), r->next);
    else
        table_remove(&requests, key_of(handle));
    free(r->buffers);
    free(r);
    forget_pending();
}

static void completed(MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL || !front_on)
        return;
    closes(front_in(), handle, (struct judge_at){0});
    front_out();
}

/* Before MPI_Finalize a process "must locally complete all MPI operations that it
 * initiated" (MPI 4.1, 11.2.2). */
static void requests_left(void) {
    if (!completions_come_here())
        return;
    struct judge *j = front_in();
    for (size_t i = 0; i < requests.size; i++)
        for (struct request *r = requests.at[i].value; r; r = r->next)
            if (!r->persistent || r->active)
                judge_mpi_request_left(j, r->at);
    front_leave();
}

__attribute__((constructor(101))) static void begin(void) {
    front_at_finalize = requests_left;
    mpi_stack_is = stack_is;
}

/* --- Waiting for them ------------------------------------------------------------- */

static void waits_for(const struct judge_at *at, int n, const MPI_Request *handles) {
    static __thread struct mpi_whom whom;
    bool known = front_on && n <= MPI_WHOM;
    whom.n = 0;
    if (known) {
        front_in();
        for (int i = 0; i < n; i++) {
            const struct request *r = table_get(&requests, key_of(handles[i]));
            if (handles[i] == MPI_REQUEST_NULL || (r && r->persistent && !r->active))
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

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    if (front_depth > 0)
        return PMPI_Wait(request, status);
    MPI_HERE;
    MPI_Request handle = *request;
    waits_for(&at, 1, &handle);
    int result = CALL(PMPI_Wait, request, status);
    mpi_waited();
    completed(handle);
    return result;
}

/* What they are before: MPI puts MPI_REQUEST_NULL in the place of those that are done. */
enum { FEW = 16 };
struct before {
    MPI_Request few[FEW], *all;
};

static const MPI_Request *keep(struct before *before, int n, const MPI_Request *handles) {
    before->all = n > FEW ? front_alloc((size_t)n * sizeof *handles) : before->few;
    if (n > 0)
        memcpy(before->all, handles, (size_t)n * sizeof *handles);
    return before->all;
}

static void forget(struct before *before) {
    if (before->all != before->few)
        free(before->all);
}

int MPI_Waitall(int count, MPI_Request requests_[], MPI_Status statuses[]) {
    if (front_depth > 0)
        return PMPI_Waitall(count, requests_, statuses);
    MPI_HERE;
    struct before before;
    waits_for(&at, count, keep(&before, count, requests_));
    int result = CALL(PMPI_Waitall, count, requests_, statuses);
    mpi_waited();
    for (int i = 0; i < count; i++)
        completed(before.all[i]);
    forget(&before);
    return result;
}

int MPI_Waitany(int count, MPI_Request requests_[], int *index, MPI_Status *status) {
    if (front_depth > 0)
        return PMPI_Waitany(count, requests_, index, status);
    MPI_HERE;
    struct before before;
    waits_for(&at, count, keep(&before, count, requests_));
    int result = CALL(PMPI_Waitany, count, requests_, index, status);
    mpi_waited();
    if (*index >= 0 && *index < count)
        completed(before.all[*index]);
    forget(&before);
    return result;
}

int MPI_Waitsome(int count, MPI_Request requests_[], int *done, int indices[],
                 MPI_Status statuses[]) {
    if (front_depth > 0)
        return PMPI_Waitsome(count, requests_, done, indices, statuses);
    MPI_HERE;
    struct before before;
    waits_for(&at, count, keep(&before, count, requests_));
    int result = CALL(PMPI_Waitsome, count, requests_, done, indices, statuses);
    mpi_waited();
    for (int i = 0; i < *done; i++)
        completed(before.all[indices[i]]);
    forget(&before);
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    if (front_depth > 0)
        return PMPI_Test(request, flag, status);
    MPI_HERE;
    MPI_Request handle = *request;
    int result = CALL(PMPI_Test, request, flag, status);
    if (result != MPI_SUCCESS || *flag)
        completed(handle);
    mpi_asked(&at, result != MPI_SUCCESS || *flag);
    return result;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    if (front_depth > 0)
        return PMPI_Request_get_status(request, flag, status);
    MPI_HERE;
    int result = CALL(PMPI_Request_get_status, request, flag, status);
    if (result == MPI_SUCCESS && *flag)
        completed(request);
    mpi_asked(&at, result != MPI_SUCCESS || *flag);
    return result;
}

int MPI_Testall(int count, MPI_Request requests_[], int *flag, MPI_Status statuses[]) {
    if (front_depth > 0)
        return PMPI_Testall(count, requests_, flag, statuses);
    MPI_HERE;
    struct before before;
    keep(&before, count, requests_);
    int result = CALL(PMPI_Testall, count, requests_, flag, statuses);
    for (int i = 0; i < count && (result != MPI_SUCCESS || *flag); i++)
        completed(before.all[i]);
    forget(&before);
    mpi_asked(&at, result != MPI_SUCCESS || *flag);
    return result;
}

int MPI_Testany(int count, MPI_Request requests_[], int *index, int *flag,
                MPI_Status *status) {
    if (front_depth > 0)
        return PMPI_Testany(count, requests_, index, flag, status);
    MPI_HERE;
    struct before before;
    keep(&before, count, requests_);
    int result = CALL(PMPI_Testany, count, requests_, index, flag, status);
    if (*flag && *index >= 0 && *index < count)
        completed(before.all[*index]);
    forget(&before);
    mpi_asked(&at, result != MPI_SUCCESS || *flag);
    return result;
}

int MPI_Testsome(int count, MPI_Request requests_[], int *done, int indices[],
                 MPI_Status statuses[]) {
    if (front_depth > 0)
        return PMPI_Testsome(count, requests_, done, indices, statuses);
    MPI_HERE;
    struct before before;
    keep(&before, count, requests_);
    int result = CALL(PMPI_Testsome, count, requests_, done, indices, statuses);
    for (int i = 0; i < *done; i++)
        completed(before.all[indices[i]]);
    forget(&before);
    mpi_asked(&at, result != MPI_SUCCESS || *done);
    return result;
}

int MPI_Request_free(MPI_Request *request) {
    if (front_depth == 0 && front_on && *request != MPI_REQUEST_NULL) {
        AT_HERE;
        closes(front_in(), *request, at);
        front_out();
    }
    return CALL(PMPI_Request_free, request);
}

/* What is marked for cancellation is completed by MPI_Wait, MPI_Test or MPI_Request_free
 * (MPI 4.1, 3.8.4): who frees it gives nothing up. */
int MPI_Cancel(MPI_Request *request) {
    if (front_depth == 0 && front_on) {
        front_in();
        struct request *r = table_get(&requests, key_of(*request));
        for (; r; r = r->next)
            r->cancelled = true;
        front_leave();
    }
    return CALL(PMPI_Cancel, request);
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

/* --- Persistent ones (MPI 4.1, 3.9) ----------------------------------------------- */

#define INIT(name, constant, write)                                                    \
    int MPI_##name(constant void *buffer, int count, MPI_Datatype type, int peer,      \
                   int tag, MPI_Comm comm, MPI_Request *request) {                     \
        if (front_depth > 0)                                                           \
            return PMPI_##name(buffer, count, type, peer, tag, comm, request);         \
        MPI_HERE;                                                                      \
        int result = CALL(PMPI_##name, buffer, count, type, peer, tag, comm, request); \
        if (peer != MPI_PROC_NULL)                                                     \
            mpi_will_have(buffer, count, type, write);                                 \
        if (result == MPI_SUCCESS)                                                     \
            mpi_opens(&at, *request, comm, mpi_peer(peer), true);                      \
        if (result == MPI_SUCCESS && peer != MPI_PROC_NULL && !(write))                \
            mpi_sends(*request, buffer, count, type);                                  \
        mpi_gives_back();                                                              \
        return result;                                                                 \
    }
INIT(Send_init, const, false)
INIT(Bsend_init, const, false)
INIT(Ssend_init, const, false)
INIT(Rsend_init, const, false)
INIT(Recv_init, , true)

/* What a persistent send has now. */
static struct mpi_sent sent_now(MPI_Request handle) {
    struct mpi_sent sent = {0};
    front_in();
    const struct request *r = table_get(&requests, key_of(handle));
    if (r && r->persistent)
        sent = r->each_time;
    front_leave();
    if (sent.bytes > 0)
        mpi_keep_sent(&sent, sent.start, (int)sent.bytes, MPI_BYTE);
    return sent;
}

static void starts(const struct judge_at *at, MPI_Request handle) {
    struct mpi_sent sent = sent_now(handle);
    struct judge *j = front_in();
    struct request *r = table_get(&requests, key_of(handle));
    for (int i = 0; r && r->persistent && i < r->nbuffers; i++) {
        const struct mpi_buffer *b = &r->buffers[i];
        judge_host_uses(j, b->start, b->bytes, b->write, !standin_host_blocks, *at);
        mpi_hold(j, b);
    }
    if (r && r->persistent) {
        lend(j, r, false, *at);
        r->cancelled = false;
        r->sent = sent;
        r->sent_at = *at;
    }
    front_out();
}

int MPI_Start(MPI_Request *request) {
    if (front_depth > 0 || !front_on)
        return PMPI_Start(request);
    MPI_HERE;
    mpi_speaks();
    starts(&at, *request);
    return CALL(PMPI_Start, request);
}

int MPI_Startall(int count, MPI_Request requests_[]) {
    if (front_depth > 0 || !front_on)
        return PMPI_Startall(count, requests_);
    MPI_HERE;
    mpi_speaks();
    for (int i = 0; i < count; i++)
        starts(&at, requests_[i]);
    return CALL(PMPI_Startall, count, requests_);
}
