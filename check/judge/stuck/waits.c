/*
 * waits.c: what this process waits for, described for rank 0 when it lasts.
 *
 * A description holds the oldest operations that are not known to be done: of what comes
 * after so many, nothing is known.
 */
#include "stuck/waits.h"

#include "base/messages.h"
#include "ranks/round_trips.h"
#include "ranks/comms.h"
#include "history/windows.h"
#include "say/failed.h"

static const double BEFORE_TELLING = 0.1, BEFORE_TELLING_POLL = 1, BETWEEN = 0.09,
                    POLLS_WITHIN = 5;
enum { MOST_OPS = 4096, QUESTIONS = 8 };

struct thread_wait {
    enum wait_kind kind;
    bool poll, aborts;
    struct judge_at at;
    double since, renewed;
    struct clock what;
    int comm;
    const void *whom;
    int peer;
    enum judge_way way;
    uint64_t meeting; // judge_meets's
    struct recent_call *launches;
    size_t nlaunches, launches_size;
    // A loop that asks, from several lines: what else it has asked, with no for an
    // answer; and, of the newest, the lines where the answer was another one.
    struct thread_wait *also;
    uint64_t yes[QUESTIONS];
    int nyes;
};

static struct stock stock;
static struct recent_call *spare; // of a wait that is over
static size_t spare_size;

static void release(struct thread_wait *wait) {
    if (!wait)
        return;
    release(wait->also);
    clock_free(&wait->what);
    if (spare) {
        free(wait->launches);
    } else {
        spare = wait->launches;
        spare_size = wait->launches_size;
    }
    stock_give(&stock, wait);
}

static struct thread_wait *asked_before(struct thread_wait *newest, enum wait_kind kind,
                                        uint64_t site) {
    struct thread_wait *wait = newest;
    while (wait && (wait->kind != kind || wait->at.site != site))
        wait = wait->also;
    return wait;
}

/* A new question of a loop that asks: the others stay, unless they are too many. */
static struct thread_wait *ask_more(struct thread *thread) {
    struct thread_wait *old = thread->wait, *wait = stock_take(&stock, sizeof *wait);
    int n = 0;
    for (const struct thread_wait *one = old; one; one = one->also)
        n++;
    if (n < QUESTIONS) {
        wait->also = old;
        wait->nyes = old->nyes;
        memcpy(wait->yes, old->yes, sizeof wait->yes);
    } else {
        release(old);
    }
    return wait;
}

static struct thread_wait *begin(struct judge *j, enum wait_kind kind, bool poll,
                                 struct judge_at at) {
    j->thread->asks_since = 0;
    struct thread_wait *old = j->thread->wait;
    bool loops = poll && old && old->poll;
    j->thread->questions++;
    struct thread_wait *wait = loops ? asked_before(old, kind, at.site) : NULL;
    if (!wait) {
        if (!loops) {
            release(old);
            j->thread->counted = 0;
            j->thread->works = false;
        }
        wait = j->thread->wait =
            loops ? ask_more(j->thread) : stock_take(&stock, sizeof *wait);
        wait->since = now(j);
        j->waits->activity++;
    }
    wait->kind = kind;
    wait->poll = poll;
    wait->at = at;
    wait->renewed = now(j);
    return wait;
}

/* The thread that is in has asked at this line, and the answer was not "not yet". The
 * first time that is news; a loop that goes on asking elsewhere has not moved. */
void waits_answered(struct judge *j, struct judge_at at) {
    struct thread_wait *newest = j->thread->wait;
    if (!newest || !newest->poll) {
        waits_end(j, NULL);
        return;
    }
    for (int i = 0; i < newest->nyes; i++)
        if (newest->yes[i] == at.site)
            return;
    if (newest->nyes == QUESTIONS || (!newest->also && newest->at.site == at.site)) {
        waits_end(j, NULL);
        return;
    }
    newest->yes[newest->nyes++] = at.site;
    j->waits->activity++;
}

void waits_begin_order(struct judge *j, const struct clock *what, bool poll,
                       struct judge_at at) {
    clock_copy(&begin(j, WAIT_ORDER, poll, at)->what, what);
}

void waits_begin_abort(struct judge *j, const struct clock *what, struct judge_at at) {
    waits_begin_order(j, what, false, at);
    j->thread->wait->aborts = true;
}

static void begin_launch(struct judge *j, bool poll, struct judge_at at) {
    struct thread_wait *wait = begin(j, WAIT_LAUNCH, poll, at);
    const struct recent *recent = j->thread->recent;
    if (!wait->launches) {
        wait->launches = spare;
        wait->launches_size = spare ? spare_size : 0;
        spare = NULL;
    }
    wait->nlaunches = 0;
    for (size_t i = 0; i < recent->n; i++) {
        ROOM(wait->launches, i, &wait->launches_size);
        wait->launches[wait->nlaunches++] = recent->at[i];
    }
}

void judge_wait_launch(struct judge *j, struct judge_at at) {
    begin_launch(j, false, at);
}

void judge_wait_leave(struct judge *j, int comm, struct judge_at at) {
    begin(j, WAIT_LEAVE, false, at)->comm = comm;
}

void judge_wait_mpi(struct judge *j, const void *whom, int peer, enum judge_way way,
                    struct judge_at at) {
    struct thread_wait *wait = begin(j, WAIT_MPI, false, at);
    wait->whom = whom;
    wait->peer = peer;
    wait->way = way;
    wait->meeting = j->thread->meeting;
    j->thread->meeting = 0;
}

void judge_poll_mpi(struct judge *j, bool done, struct judge_at at) {
    round_trip_heard(j);
    windows_news(j, -1);
    if (done)
        waits_end(j, NULL);
    else
        begin(j, WAIT_MPI, true, at); // for nobody knows whom
}

bool waits_for_launch(const struct judge *j) {
    return j->thread->wait && j->thread->wait->kind == WAIT_LAUNCH;
}

void waits_begin_poll_comm(struct judge *j, int comm, struct judge_at at) {
    // After a call it is that one that is asked for: it may wait for the others' calls.
    const struct recent *recent = j->thread->recent;
    size_t i = comm_of(j, comm)->facts.finalized ? recent->n : 0;
    while (i < recent->n && (recent->at[i].join || recent->at[i].comm != comm))
        i++;
    if (i < recent->n)
        begin_launch(j, true, at);
    else
        begin(j, WAIT_COMM, true, at)->comm = comm;
}

void judge_poll_join(struct judge *j, const struct judge_join *join, struct judge_at at) {
    round_trip_heard(j);
    struct thread_wait *wait = begin(j, WAIT_LAUNCH, true, at);
    wait->nlaunches = 1;
    ROOM(wait->launches, 0, &wait->launches_size);
    wait->launches[0] = (struct recent_call){.join = true, .notice = calls_notice(join)};
}

void waits_asks(struct judge *j) {
    j->thread->asked = now(j);
    if (j->thread->asks_since == 0)
        j->thread->asks_since = j->thread->asked;
}

static void tell(struct judge *j, bool all);

void waits_begin_finish(struct judge *j, enum judge_finish how, struct judge_at at) {
    struct waits *waits = j->waits;
    waits->finished = true;
    waits->finish = (enum wait_kind)(WAIT_EXIT + how);
    waits->finish_at = at;
    waits->finish_thread = j->thread->number;
    waits->activity++;
    if (j->options.mode == JUDGE_OFF)
        return;
    calls_flush(j, true);
    tell(j, true); // perhaps the last word of this process
}

void waits_end(struct judge *j, struct clock *what) {
    struct waits *waits = j->waits;
    if (what)
        *what = (struct clock){0};
    struct thread_wait *wait = j->thread->wait;
    if (!wait) {
        // MPI_Finalize has returned; the program may go on without MPI.
        if (waits->finish == WAIT_FINALIZE && j->thread->number == waits->finish_thread)
            waits->finished = false;
        return;
    }
    uint64_t met = wait->way == JUDGE_MEETS ? wait->meeting : 0;
    if (wait->kind == WAIT_MPI || wait->kind == WAIT_LEAVE)
        windows_meet(j, met, -1);
    j->met = met ? met : j->met;
    if (what) {
        *what = wait->what;
        wait->what = (struct clock){0};
    }
    release(wait);
    j->thread->wait = NULL;
    waits->activity++;
}

void judge_waits_thread(struct judge *j, uint64_t name) {
    waits_end(j, NULL);
    j->thread->joins = name;
}

void waits_thread_gone(struct judge *j, struct thread *thread) {
    release(thread->wait);
    j->waits->activity++;
}

/* The first of its waits from this one on that has not been over for long. */
static struct thread_wait *lasting(struct judge *j, struct thread_wait *wait) {
    while (wait && wait->poll && now(j) - wait->renewed >= POLLS_WITHIN)
        wait = wait->also;
    return wait;
}

/* The newest of its waits that lasts. A thread that works between its questions does not
 * wait: of the last while it has had the processor for a good part, and for longer than
 * it takes to ask. One that sleeps between them has not, and one that only asks is soon
 * there again. On a busy machine both have it for less. */
static struct thread_wait *waits_still(struct judge *j, struct thread *thread) {
    static const double WHILE = 0.5, PART = 0.1, TO_ASK = 50e-6; // seconds
    double past = now(j) - thread->counted;
    if (thread->wait && thread->wait->poll && past >= WHILE && j->outside.worked) {
        double more = j->outside.worked(j->outside.self, thread->name) - thread->worked;
        thread->works = thread->counted > 0 && more > PART * past &&
                        more > TO_ASK * thread->questions;
        j->waits->activity += thread->works;
        thread->counted = now(j);
        thread->worked += more;
        thread->questions = 0;
    }
    return thread->works ? NULL : lasting(j, thread->wait);
}

struct described {
    struct state_head head;
    void *at[PARTS];
    size_t size[PARTS];
    uint64_t newest; // operation
};

static void *one_more(struct described *d, enum state_part part) {
    size_t n = (size_t)d->head.n[part]++;
    d->at[part] = room_for(d->at[part], n, &d->size[part], state_bytes[part]);
    return (char *)d->at[part] + n * state_bytes[part];
}

static void add_int(struct described *d, int value) {
    *(int32_t *)one_more(d, INTS) = value;
}

/* Its place in the description; -1: it is done, or comes later. */
static int index_of(struct judge *j, const struct described *d, uint64_t number) {
    const struct pending_op *op = pending_find(&j->calls->pending, number);
    return op && number <= d->newest ? op->described : -1;
}

static void add_ops(struct judge *j, struct described *d) {
    const struct pending *u = &j->calls->pending;
    size_t i = 0;
    for (; i < u->n && d->head.n[OPS] < MOST_OPS; i++) {
        struct pending_op *op = u->at[i];
        if (op->seen)
            continue;
        op->described = d->head.n[OPS];
        d->newest = op->number;
        struct state_op *record = one_more(d, OPS);
        record->fact = op->fact;
        record->signals = op->comm < 0 ? -op->comm : 0;
        name_call(record->call, op->at.call);
        if (op->like) {
            // where it is sure to end, nothing is before it
            int leader = index_of(j, d, op->like);
            const struct state_op *ops = d->at[OPS];
            record->first_before = leader < 0 ? 0 : ops[leader].first_before;
            record->nbefore = leader < 0 ? 0 : ops[leader].nbefore;
            continue;
        }
        record->first_before = d->head.n[INTS];
        for (size_t b = 0; b < op->nbefore; b++) {
            int before = index_of(j, d, op->before[b]);
            if (before >= 0)
                add_int(d, before);
        }
        record->nbefore = d->head.n[INTS] - record->first_before;
    }
    d->head.more = i < u->n;
}

static void add_comms(struct judge *j, struct described *d) {
    for (size_t i = 0; i < j->calls->comms.n; i++) {
        const struct comm *comm = j->calls->comms.at[i];
        if (comm->facts.gone)
            continue;
        *(struct state_comm *)one_more(d, COMMS) =
            (struct state_comm){.id = comm->facts.id,
                                .collectives = comm->collectives,
                                .called = comm->called,
                                .rank = comm->facts.rank};
        for (size_t k = 0; k < comm->pairs.size; k++) {
            const struct pair_count *count = comm->pairs.at[k].value;
            if (count)
                *(struct pair_count *)one_more(d, PAIRS) = *count;
        }
    }
}

static void add_order(struct judge *j, struct described *d, struct state_wait *record,
                      const struct thread_wait *wait) {
    const struct pending_op **list = NULL;
    size_t size = 0;
    size_t n = pending_covered(&j->calls->pending, &wait->what, &list, &size);
    for (size_t i = 0; i < n; i++) {
        int at = index_of(j, d, list[i]->number);
        if (at >= 0)
            add_int(d, at);
    }
    record->n = d->head.n[INTS] - record->first;
    free(list);
}

static void add_peers(struct judge *j, struct described *d, struct state_wait *record,
                      const struct thread_wait *wait) {
    record->n = -1;
    record->way = (int32_t)wait->way;
    record->meeting = wait->meeting;
    if (wait->peer == JUDGE_ANY || !wait->whom || !j->outside.mpi_ranks)
        return;
    int *world = must_alloc((size_t)j->nranks * sizeof *world);
    int n = j->outside.mpi_ranks(j->outside.self, wait->whom, world, j->nranks);
    record->n = n;
    record->one_of = wait->peer == JUDGE_ONE_OF;
    for (int i = 0; i < n && i < j->nranks; i++)
        add_int(d, world[i]);
    free(world);
}

static struct state_wait *add_wait(struct described *d, enum wait_kind kind,
                                   struct judge_at at) {
    struct state_wait *record = one_more(d, WAITS);
    memset(record, 0, sizeof *record);
    record->kind = (int32_t)kind;
    record->site = at.site;
    record->first = d->head.n[INTS];
    name_call(record->call, at.call);
    return record;
}

/* A watchdog beside threads that wait: for long it has done nothing but ask. */
static bool only_asks(struct judge *j, const struct thread *thread) {
    bool another = false;
    for (const struct thread *t = j->threads; t; t = t->next)
        another |= t != thread && t->wait && !t->wait->poll;
    return another && thread->asks_since != 0 &&
           now(j) - thread->asks_since >= j->options.timeout &&
           now(j) - thread->asked < POLLS_WITHIN;
}

/* It goes on when the other one has ended. */
static bool waits_for_another(const struct judge *j, const struct thread *thread) {
    for (const struct thread *t = j->threads; t && thread->joins; t = t->next)
        if (t != thread && t->name == thread->joins)
            return true;
    return false;
}

static void add_thread(struct judge *j, struct described *d, const struct thread *thread,
                       const struct thread_wait *wait) {
    struct state_wait *record = add_wait(d, wait->kind, wait->at);
    double worked = wait->kind == WAIT_MPI && j->outside.worked
                        ? j->outside.worked(j->outside.self, thread->name)
                        : -1;
    if (worked >= 0 && (d->head.worked < 0 || worked < d->head.worked))
        d->head.worked = worked;
    record->poll = wait->poll;
    record->aborts = wait->aborts;
    const struct comm_facts *comm = calls_comm(j, wait->comm);
    if (comm && (wait->kind == WAIT_LEAVE || wait->kind == WAIT_COMM)) {
        record->comm = comm->id;
        record->comm_number = comm->number;
    }
    if (wait->kind == WAIT_ORDER)
        add_order(j, d, record, wait);
    else if (wait->kind == WAIT_MPI)
        add_peers(j, d, record, wait);
    if (wait->kind != WAIT_LAUNCH)
        return;
    record->first = d->head.n[ITEMS];
    record->n = (int32_t)wait->nlaunches;
    for (size_t i = 0; i < wait->nlaunches; i++)
        *(struct recent_call *)one_more(d, ITEMS) = wait->launches[i];
}

/* Of a loop that asks each question is a wait of its own: it goes on when one is
 * answered.
 */
static void add_waits(struct judge *j, struct described *d) {
    const struct waits *waits = j->waits;
    for (struct thread *thread = j->threads; thread; thread = thread->next) {
        struct thread_wait *wait = waits_still(j, thread);
        if (!wait && (only_asks(j, thread) || waits_for_another(j, thread)))
            continue;
        if (!waits->finished || thread->number != waits->finish_thread)
            d->head.computing += !wait;
        for (; wait; wait = lasting(j, wait->also))
            add_thread(j, d, thread, wait);
    }
    // A thread that has told nothing yet may be about to send what others wait for: as
    // long as it is not known, the timeout decides.
    if (d->head.n[WAITS] > 0 && d->head.computing == 0 && j->outside.strangers &&
        j->outside.strangers(j->outside.self)) {
        struct state_wait *record = add_wait(d, WAIT_MPI, (struct judge_at){0});
        record->poll = 1;
        record->n = -1;
    }
    if (waits->finished)
        add_wait(d, waits->finish, waits->finish_at);
}

static void append(char **at, const void *data, size_t bytes) {
    if (bytes)
        memcpy(*at, data, bytes);
    *at += bytes;
}

/* Grows with all that happens. */
static uint64_t activity(const struct judge *j) {
    return j->waits->activity + j->calls->activity +
           (j->outside.arrived ? j->outside.arrived(j->outside.self) : 0);
}

/* All; or only the operations, of a process that goes on. */
static void tell(struct judge *j, bool all) {
    struct waits *waits = j->waits;
    struct calls *calls = j->calls;
    struct described d = {.head = {.message = MESSAGE_STATE,
                                   .activity = activity(j),
                                   .meetings = j->meetings,
                                   .failed_site = calls->failed_site,
                                   .worked = -1}};
    struct state_head *head = &d.head;
    memcpy(head->host, j->host, sizeof head->host);
    add_ops(j, &d);
    add_comms(j, &d);
    head->busy = !all;
    head->computing = !all;
    if (all)
        add_waits(j, &d);
    struct judge_at first;
    const char *failure = calls->failure ? calls->failure : "", *unlooked;
    head->unlooked = failed_unlooked(j, &first, &unlooked);
    head->unlooked_site = first.site;
    name_call(head->unlooked_call, first.call);
    head->words_bytes = (int32_t)(strlen(failure) + strlen(unlooked) + 2);
    size_t bytes = sizeof *head + (size_t)head->words_bytes;
    for (int part = 0; part < PARTS; part++)
        bytes += (size_t)head->n[part] * state_bytes[part];
    char *data = must_alloc(bytes), *at = data;
    append(&at, head, sizeof *head);
    for (int part = 0; part < PARTS; part++) {
        append(&at, d.at[part], (size_t)head->n[part] * state_bytes[part]);
        free(d.at[part]);
    }
    append(&at, failure, strlen(failure) + 1);
    append(&at, unlooked, strlen(unlooked) + 1);
    waits->sent = now(j);
    waits->sent_waiting = head->n[WAITS] > 0;
    waits->activity_sent = head->activity;
    message_send(j, 0, data, bytes);
    free(data);
}

bool waits_tell(struct judge *j) {
    struct waits *waits = j->waits;
    bool lasts = waits->finished, any = lasts;
    for (struct thread *thread = j->threads; thread; thread = thread->next) {
        const struct thread_wait *wait = waits_still(j, thread);
        any |= wait != NULL;
        lasts |= wait && now(j) - wait->since >
                             (wait->poll ? BEFORE_TELLING_POLL : BEFORE_TELLING);
    }
    // A process that has told that it waits also tells that it goes on.
    bool goes_on = waits->sent_waiting && waits->activity_sent != activity(j);
    // What it has queued may lack ranks, whatever it does meanwhile.
    bool all = lasts || goes_on, queued = j->calls->pending.n > j->calls->pending.nseen;
    if (j->options.mode != JUDGE_OFF && (all || queued) &&
        now(j) - waits->sent >= (all ? BETWEEN : BEFORE_TELLING_POLL))
        tell(j, all);
    return any;
}
