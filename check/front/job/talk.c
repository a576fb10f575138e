/*
 * talk.c: what the judges of the ranks tell one another, and what they say to the user.
 *
 * A helper thread carries it, over an MPI communicator of their own or, where MPI was not
 * started, over TCP (tcp.c): no call of the program waits for it. It also looks ten times
 * a second whether those who wait can go on. MPI Standard, "MPI and Threads"
 * (MPI_THREAD_MULTIPLE).
 */
#define _GNU_SOURCE
#include "talk.h"

#include "neighbours.h"
#include "python.h"
#include "tcp.h"
#include "timeline.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

struct front_job front_job = {.nranks = 1};
static bool helper_runs; // it carries what the judges tell one another

void talk_pause(double seconds) {
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

int talk_launched_as(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

void talk_checks_end(void) {
    front_job.gave_up = true;
    front_options.mode = JUDGE_OFF;
    front_obeys();
    front_checks = false;
    front_on = timeline_on;
}

void talk_gives_up(const char *why) {
    if (!front_checks || atomic_exchange(&front_job.gave_up, true))
        return;
    talk_checks_end();
    // Without MPI it is the same on all ranks, most likely: one of them speaks.
    if (neighbours_first(NEIGHBOURS_GIVE_UP, talk_launched_as() == 0))
        fprintf(stderr, "NCCL CHECK: not checked from here on: %s\n", why);
}

/* MPI_Abort has been seen to wait for another thread of this process that is in MPI. */
static void *end_in_any_case(void *unused) {
    talk_pause(3);
    _exit(1);
    return unused;
}

void talk_says(void *self, const char *text, bool end, uint64_t key) {
    (void)self;
    if (front_job.ending || front_job.gave_up)
        return;
    if (end) {
        // What several ranks find is told by one: the first of its machine, machines in
        // turn.
        if (!neighbours_first(NEIGHBOURS_REPORT, true)) {
            for (int i = 0; i < 1000; i++, talk_pause(0.01))
                if (timeline_on && !front_in_signal)
                    timeline_asked();
            _exit(1);
        }
        talk_pause(neighbours_turn(front_job.rank, front_job.nranks));
        front_job.ending = true;
    } else if (!neighbours_new(key)) {
        // This one may end the job before the other one has said it.
        for (int i = 0; i < 100 && !neighbours_said(key, false); i++)
            talk_pause(0.001);
        return;
    }
    fflush(stdout);
    fprintf(stderr, "NCCL CHECK: %s", text);
    fflush(stderr);
    neighbours_said(key, true);
    if (!end)
        return;
    if (timeline_on)
        timeline_dies(helper_runs && !front_in_signal);
    if (OVER_STANDIN)
        STANDIN(job_ends)();
    talk_pause(0.1); // the launcher passes on what was printed before it hears of the end
    pthread_t thread;
    front_depth++; // the thread is none of the program's
    neighbours_need_no_name();
    if (tcp_runs() && !front_in_signal)
        tcp_ends_job();
    if (front_job.mpi_up && !front_in_signal &&
        pthread_create(&thread, NULL, end_in_any_case, NULL) == 0)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

struct parcel {
    struct parcel *next;
    MPI_Request request;
    int to;
    size_t bytes;
    char data[];
};

enum { PARCEL = 1 };            // the tag
enum { MEETING_SECONDS = 120 }; // over TCP; ranks of Python may start slowly
static MPI_Comm control = MPI_COMM_NULL;
static struct parcel *outbox, **outbox_end = &outbox; // not yet given to MPI
static struct parcel *under_way;
static pthread_mutex_t outbox_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t outbox_bytes;
// parcels, per rank; those of a rank to itself are not counted
static int *sent, *received;

/* Called with the judge's lock held: only puts it aside. */
void talk_sends(void *self, int to, const void *data, size_t bytes) {
    (void)self;
    struct parcel *parcel = malloc(sizeof *parcel + bytes);
    if (!parcel)
        return;
    *parcel = (struct parcel){.to = to, .bytes = bytes};
    memcpy(parcel->data, data, bytes);
    pthread_mutex_lock(&outbox_lock);
    *outbox_end = parcel;
    outbox_end = &parcel->next;
    outbox_bytes += bytes;
    bool many = outbox_bytes > 1 << 20;
    pthread_mutex_unlock(&outbox_lock);
    if (many)
        talk_helper_looks();
}

static struct parcel *take_outbox(void) {
    pthread_mutex_lock(&outbox_lock);
    struct parcel *all = outbox;
    outbox = NULL;
    outbox_end = &outbox;
    outbox_bytes = 0;
    pthread_mutex_unlock(&outbox_lock);
    return all;
}

static void deliver(int from, const void *data, size_t bytes) {
    if (front_job.gave_up || python_hears(data, bytes))
        return;
    judge_receive(front_in_as(0), from, data, bytes);
    front_leave();
}

/* Lines of Python: each rank may have to name another one's. */
static void tell_lines(void) {
    char line[JUDGE_PLACE + 16];
    for (size_t bytes;
         front_job.nranks > 1 && (bytes = python_tells(line, sizeof line)) > 0;)
        for (int to = 0; to < front_job.nranks; to++)
            if (to != front_job.rank)
                talk_sends(NULL, to, line, bytes);
}

static void post_parcels(void) {
    tell_lines();
    for (struct parcel *parcel = take_outbox(), *next; parcel; parcel = next) {
        next = parcel->next;
        if (parcel->to == front_job.rank) {
            deliver(front_job.rank, parcel->data, parcel->bytes);
            free(parcel);
        } else if (control == MPI_COMM_NULL) {
            if (tcp_runs())
                tcp_sends(parcel->to, parcel->data, parcel->bytes);
            free(parcel);
        } else {
            PMPI_Isend(parcel->data, (int)parcel->bytes, MPI_BYTE, parcel->to, PARCEL,
                       control, &parcel->request);
            sent[parcel->to]++;
            parcel->next = under_way;
            under_way = parcel;
        }
    }
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

/* A rank whose checks have ended says so once: without it nobody can be judged. */
static void pass_on_giving_up(void) {
    static bool others_know;
    if (!front_job.gave_up || others_know || (control == MPI_COMM_NULL && !tcp_runs()))
        return;
    others_know = true;
    for (int to = 0; to < front_job.nranks; to++) {
        MPI_Request request;
        if (to != front_job.rank && tcp_runs()) {
            tcp_sends(to, NULL, 0);
        } else if (to != front_job.rank) {
            PMPI_Isend(NULL, 0, MPI_BYTE, to, PARCEL, control, &request);
            PMPI_Request_free(&request);
            sent[to]++;
        }
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
    while (control != MPI_COMM_NULL) {
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
        if (first->bytes > 0)
            deliver(first->from, first->data, (size_t)first->bytes);
        else
            talk_checks_end(); // it has said why
        free(first);
    }
}

/* The same over TCP. False: the judges can't talk now. */
static bool take_over_tcp(void) {
    int from, nmissing;
    void *data;
    size_t bytes;
    switch (tcp_round()) {
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
        if (bytes > 0)
            deliver(from, data, bytes);
        else
            talk_checks_end(); // it has said why
        free(data);
    }
    return true;
}

static pthread_t helper;
static bool helper_ends, helper_soon;
static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t helper_wakes;

void talk_helper_looks(void) {
    pthread_mutex_lock(&helper_lock);
    helper_soon = true;
    pthread_cond_signal(&helper_wakes);
    pthread_mutex_unlock(&helper_lock);
}

/* One round: what came, what is to be sent, who can go on. */
static bool round_of_judges(void) {
    bool busy = false, can_talk = !tcp_runs() || take_over_tcp();
    take_parcels();
    if (!front_job.gave_up && can_talk) {
        busy = judge_look(front_in_as(0));
        front_leave();
    }
    post_parcels();
    pass_on_giving_up();
    if (timeline_on)
        timeline_asked();
    return busy;
}

static void *help(void *unused) {
    (void)unused;
    front_depth = 1; // it is not the program's
    bool busy = false;
    pthread_mutex_lock(&helper_lock);
    while (!helper_ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += coming || under_way ? 1000000 : busy ? 20000000 : 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!helper_soon)
            pthread_cond_timedwait(&helper_wakes, &helper_lock, &until);
        helper_soon = false;
        if (helper_ends)
            break;
        pthread_mutex_unlock(&helper_lock);
        busy = round_of_judges();
        pthread_mutex_lock(&helper_lock);
    }
    pthread_mutex_unlock(&helper_lock);
    return NULL;
}

void talk_helper_begins(void) {
    if (helper_runs || !front_checks)
        return;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&helper_wakes, &monotonic);
    pthread_condattr_destroy(&monotonic);
    helper_ends = false;
    front_depth++; // not the program's
    helper_runs = pthread_create(&helper, NULL, help, NULL) == 0;
    if (helper_runs)
        pthread_setname_np(helper, "nccl-check"); // not the program's own
    front_depth--;
}

void talk_helper_ends(void) {
    if (!helper_runs)
        return;
    pthread_mutex_lock(&helper_lock);
    helper_ends = true;
    pthread_cond_signal(&helper_wakes);
    pthread_mutex_unlock(&helper_lock);
    front_depth++; // not the program's
    pthread_join(helper, NULL);
    front_depth--;
    helper_runs = false;
}

bool talk_has_helper(void) {
    return helper_runs;
}

void talk_forked(void) {
    helper_runs = false;
    tcp_forked();
    python_forked();
}

void talk_settles(void) {
    const int rounds = front_job.nranks > 1 ? 50 : 5;
    for (int i = 0; i < rounds && helper_runs && !front_job.ending; i++) {
        talk_helper_looks();
        talk_pause(0.02);
    }
}

void talk_opens(void) {
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    PMPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN);
    sent = must_alloc((size_t)front_job.nranks * sizeof *sent);
    received = must_alloc((size_t)front_job.nranks * sizeof *received);
}

void talk_closes(void) {
    if (control != MPI_COMM_NULL)
        PMPI_Comm_free(&control);
    control = MPI_COMM_NULL;
}

static void complete(MPI_Request *request, bool helper_does_the_rest) {
    for (int done = 0; PMPI_Test(request, &done, MPI_STATUS_IGNORE), !done;
         talk_pause(0.0005))
        if (!helper_does_the_rest)
            take_parcels();
}

/* A rank without MPI leaves. The hub stays so long that those who wait for a rank that
 * has left can be told so. */
static void leave_over_tcp(void) {
    talk_helper_ends();
    round_of_judges();
    for (int i = 0; i < (front_options.timeout + 3) * 100 && !tcp_alone(); i++) {
        talk_pause(0.01);
        round_of_judges();
    }
    if (!front_job.gave_up) {
        judge_last_look(front_in_as(0));
        front_leave();
    }
    neighbours_need_no_name();
    tcp_leaves();
}

void talk_leaves_early(void) {
    talk_helper_ends();
    round_of_judges();
    neighbours_need_no_name();
    tcp_leaves();
}

void talk_meets(void) {
    MPI_Request request;
    if (tcp_runs())
        leave_over_tcp();
    if (control == MPI_COMM_NULL)
        return;
    int *expected = must_alloc((size_t)front_job.nranks * sizeof *expected);
    int *mine = must_alloc((size_t)front_job.nranks * sizeof *mine);
    if (OVER_STANDIN)
        STANDIN(host_blocks)(1);
    PMPI_Ibarrier(control, &request);
    complete(&request, true);
    talk_helper_ends();
    // From here on this thread does what the helper did. Nothing waits any more: what is
    // still to be told are calls, to be compared.
    round_of_judges();
    memcpy(mine, sent, (size_t)front_job.nranks * sizeof *mine);
    PMPI_Ialltoall(mine, 1, MPI_INT, expected, 1, MPI_INT, control, &request);
    complete(&request, false);
    for (int from = 0; from < front_job.nranks; from++)
        for (; received[from] < expected[from]; talk_pause(0.0002))
            take_parcels();
    // What was compared last is said, if it was wrong.
    if (!front_job.gave_up) {
        judge_last_look(front_in_as(0));
        front_leave();
    }
    for (struct parcel *parcel = take_outbox(), *next; parcel; parcel = next) {
        next = parcel->next;
        free(parcel);
    }
    PMPI_Ibarrier(control, &request);
    complete(&request, false);
    while (under_way) // received by now
        post_parcels();
    if (OVER_STANDIN)
        STANDIN(host_blocks)(0);
    free(expected);
    free(mine);
}
