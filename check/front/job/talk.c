/*
 * talk.c: what the judges of the ranks tell one another, and what they say to the user.
 *
 * A helper thread carries it, over a link (links.h): no call of the program waits for it.
 * It also looks ten times a second whether those who wait can go on.
 */
#define _GNU_SOURCE
#include "talk.h"

#include "neighbours.h"
#include "python.h"
#include "timeline.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

struct front_job front_job = {.nranks = 1};
static const struct link *over; // what carries parcels; NULL: none
static bool helper_runs;        // it carries what the judges tell one another

void talk_pause(double seconds) {
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

int talk_launched_as(void) {
    // Under srun or mpirun there may be one torchrun for each node, which says the ranks.
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = getenv("WORLD_SIZE") ? 0 : 1; i < sizeof names / sizeof *names; i++)
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
    if (over && !front_in_signal)
        over->ends_job();
    if (front_job.mpi_up && !front_in_signal &&
        pthread_create(&thread, NULL, end_in_any_case, NULL) == 0)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

static struct parcel *outbox, **outbox_end = &outbox; // not yet given to the link
static pthread_mutex_t outbox_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t outbox_bytes;

void talk_over(const struct link *link) {
    over = link;
}

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

void talk_delivers(int from, const void *data, size_t bytes) {
    if (bytes == 0) // it has said why
        talk_checks_end();
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

/* A rank whose checks have ended says so once: without it nobody can be judged. */
static void pass_on_giving_up(void) {
    static bool others_know;
    if (!front_job.gave_up || others_know || !over)
        return;
    others_know = true;
    for (int to = 0; to < front_job.nranks; to++)
        if (to != front_job.rank)
            talk_sends(NULL, to, "", 0);
}

static void empty_outbox(void) {
    tell_lines();
    for (struct parcel *parcel = take_outbox(), *next; parcel; parcel = next) {
        next = parcel->next;
        if (parcel->to != front_job.rank && over) {
            over->sends(parcel);
            continue;
        }
        if (parcel->to == front_job.rank)
            talk_delivers(front_job.rank, parcel->data, parcel->bytes);
        free(parcel);
    }
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

bool talk_round(void) {
    bool busy = false, can_talk = !over || over->moves();
    if (!front_job.gave_up && can_talk) {
        busy = judge_look(front_in_as(0));
        front_leave();
    }
    pass_on_giving_up();
    empty_outbox();
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
        until.tv_nsec += over && over->is_moving() ? 1000000 : busy ? 20000000 : 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!helper_soon)
            pthread_cond_timedwait(&helper_wakes, &helper_lock, &until);
        helper_soon = false;
        if (helper_ends)
            break;
        pthread_mutex_unlock(&helper_lock);
        busy = talk_round();
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
    over = NULL; // the parent's
    python_forked();
}

void talk_settles(void) {
    // Alone it is over before the judge would report two joins that cannot both be
    // (members.c): the program hears of the refusal first.
    const int rounds = front_job.nranks > 1 ? 50 : 2;
    for (int i = 0; i < rounds && helper_runs && !front_job.ending; i++) {
        talk_helper_looks();
        talk_pause(0.02);
    }
}

void talk_leaves_early(void) {
    talk_helper_ends();
    talk_round();
    over->leaves();
}

void talk_meets(void) {
    if (!over)
        return;
    if (OVER_STANDIN)
        STANDIN(host_blocks)(1);
    over->meets();
    talk_helper_ends();
    // From here on this thread does what the helper did.
    talk_round();
    over->takes_rest();
    // What was compared last is said, if it was wrong.
    if (!front_job.gave_up) {
        judge_last_look(front_in_as(0));
        front_leave();
    }
    for (struct parcel *parcel = take_outbox(), *next; parcel; parcel = next) {
        next = parcel->next;
        free(parcel);
    }
    over->leaves();
    if (OVER_STANDIN)
        STANDIN(host_blocks)(0);
}
