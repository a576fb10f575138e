/*
 * shared.c: memory that several processes use: uses that nothing puts in order.
 *
 * CUDA puts operations of different processes in no order (CUDA Programming Guide,
 * "Interprocess Communication": the processes have to synchronise). What does is not
 * seen as a whole: a message, a collective, a file. So each process notes two moments of
 * its own for each use: when it had last heard from others before the use was queued, and
 * when it first said something to anybody after it knew that the use was done, or put a
 * call of NCCL behind it. A use of which this came before the other process last heard
 * from anybody may be before the other's. In a collective call of all processes nobody
 * hears of what came after the last of them had begun it. Two uses of the same bytes, one
 * of them a write, neither of which may be before the other, are a race. The clock is the
 * machine's, and one machine's is all that such memory is open to.
 *
 * An owner gives such memory back when the others have closed it: "Calling cudaFree on an
 * exported memory region before calling cudaIpcCloseMemHandle in the importing context
 * will result in undefined behavior" (CUDA Runtime API, cudaIpcOpenMemHandle). So each of
 * their uses, and their closing it, may be before that.
 *
 * Rank 0 is told of the uses, and compares.
 */
#include "inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double BEFORE_TELLING = 0.2; // seconds
enum { LOOK_BACK = 32, KEPT = 512, NAME = 40, RECENT = 64, MEETINGS = 4096 };

struct shared_use { // as rank 0 is told of it
    uint64_t memory, number, from, to, site, made, bytes;
    double heard, done; // heard: INFINITY: not known; done: at the earliest
    double apart;       // when it was last heard in no meeting
    double before;      // when it was last heard before the meeting
    double at, opened;  // when it was queued, or done; when this process opened it
    uint64_t meeting;   // in which it was heard; 0: in none
    int32_t write, final, own, taken_back;
    int32_t gone, pad; // the owner frees it, another closes it
    char call[NAME];
};

struct shared_batch {
    unsigned char message, pad[7];
    char host[JUDGE_HOST];
};

struct begun { // a collective call of all processes, by this one
    uint64_t meeting;
    double at;
    int64_t root; // of whom alone the others hear; -1: of all
};

struct pending { // of this process
    struct shared_use told;
    int slot; // NONE: the host itself did it, and knows that it is done
    uint64_t seq;
    bool sent;
};
enum { NONE = -1 };

struct heard_use { // of another, on rank 0
    struct shared_use told;
    int world;
    char host[JUDGE_HOST];
};

struct meeting { // on rank 0
    int n;       // have begun it
    double last; // of them
    double told; // the root has begun it; 0: there is none, or it has not
    int root;
};

struct memory { // on rank 0
    struct heard_use *at;
    size_t n, size;
};

struct shared {
    double heard, apart, before;
    double told; // heard last, except in a function on a stream or while NCCL queues
    uint64_t met;
    struct begun begun[RECENT]; // the newest, in turn
    uint64_t nbegun, told_begun;
    bool tells_begun, asked; // asked: rank 0 has asked the others to
    struct map meetings;     // struct meeting
    uint64_t oldest;         // of these
    bool unseen;             // hears in ways that are no events
    bool early;              // has spoken while a use was not known to be done
    int earlies;
    uint64_t number;
    struct pending *pending;
    size_t npending, pending_size;
    struct map memories; // struct memory, by id
};

static struct shared *shared_of(struct judge *j) {
    if (!j->shared)
        j->shared = must_alloc(sizeof *j->shared);
    return j->shared;
}

/* --- Here ------------------------------------------------------------------------- */

void shared_meets(struct judge *j, uint64_t meeting, int root) {
    struct shared *shared = shared_of(j);
    shared_speaks(j); // no later than it has begun
    shared->begun[shared->nbegun++ % RECENT] = (struct begun){meeting, now(j), root};
    if (j->thread)
        j->thread->meeting = meeting;
}

void shared_may_hear(struct judge *j) {
    struct shared *shared = shared_of(j);
    shared->before = shared->heard;
    shared->heard = now(j);
    shared->met = j->thread ? j->thread->meeting : 0;
    if (!shared->met)
        shared->apart = shared->heard;
    if (j->thread)
        j->thread->meeting = 0;
}

void shared_hears(struct judge *j) {
    shared_may_hear(j);
    j->shared->told = j->shared->heard;
}

double shared_heard(struct judge *j) {
    struct shared *shared = shared_of(j);
    return shared->unseen ? now(j) : shared->told;
}

void shared_begins(struct judge *j) {
    struct shared *shared = shared_of(j);
    shared->tells_begun = true;
    if (shared->heard == 0)
        shared->heard = now(j);
}

/* One more, done by the host itself, now. */
static struct pending *note(struct judge *j, const struct shared_part *part,
                            struct judge_at at) {
    struct shared *shared = shared_of(j);
    ROOM(shared->pending, shared->npending, &shared->pending_size);
    struct pending *p = &shared->pending[shared->npending++];
    *p = (struct pending){.told = {.memory = part->memory,
                                   .number = ++shared->number,
                                   .from = part->from,
                                   .to = part->to,
                                   .site = at.site,
                                   .made = part->made,
                                   .bytes = part->bytes,
                                   .heard = shared->heard,
                                   .apart = shared->apart,
                                   .before = shared->before,
                                   .at = now(j),
                                   .opened = part->opened,
                                   .meeting = shared->met,
                                   .write = part->write,
                                   .own = part->own},
                          .slot = NONE};
    snprintf(p->told.call, sizeof p->told.call, "%s", at.call ? at.call : "?");
    return p;
}

void shared_uses(struct judge *j, const struct shared_part *part, const struct use *use,
                 const struct clock *clock) {
    struct shared *shared = shared_of(j);
    if (j->nranks == 1 || shared->unseen)
        return;
    // What comes before it may wait for other processes itself.
    double heard =
        part->kernels || calls_before(j, use, clock) ? INFINITY : shared->heard;
    for (size_t i = shared->npending; i-- > 0 && i + LOOK_BACK > shared->npending;) {
        struct pending *p = &shared->pending[i];
        if (p->slot != use->slot || p->told.memory != part->memory ||
            p->told.from != part->from || p->told.to != part->to ||
            p->told.write != part->write || p->told.site != use->at.site ||
            p->told.heard != heard || p->told.final)
            continue;
        p->seq = use->seq; // one stands for all
        return;
    }
    struct pending *p = note(j, part, use->at);
    p->told.heard = heard;
    p->told.meeting = isinf(heard) ? 0 : shared->met;
    p->slot = use->slot;
    p->seq = use->seq;
}

void shared_taken_back(struct judge *j, const struct use *use) {
    struct shared *shared = j->shared;
    for (size_t i = 0; shared && i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        if (p->slot == use->slot && p->seq == use->seq)
            p->told.taken_back = p->told.final = true;
    }
}

void shared_gone(struct judge *j, const struct shared_part *part, struct judge_at at) {
    if (j->nranks > 1 && !shared_of(j)->unseen)
        note(j, part, at)->told.gone = true;
}

static bool is_done(const struct pending *p, const struct clock *clock) {
    return p->slot == NONE || clock_covers(clock, p->slot, p->seq);
}

static void end(struct judge *j, struct pending *p) {
    p->told.final = true;
    p->told.done = now(j);
}

/* Of what is not known to be done, nobody will know when others may hear of it. */
bool shared_is_unseen(const struct judge *j) {
    return j->shared && j->shared->unseen;
}

void shared_unseen(struct judge *j) {
    struct shared *shared = shared_of(j);
    shared_speaks(j);
    detours_unseen(j);
    for (size_t i = 0; i < shared->npending && !shared->unseen; i++) {
        struct pending *p = &shared->pending[i];
        if (!p->told.final)
            p->told.taken_back = p->told.final = true;
    }
    shared->unseen = true;
}

void shared_passes(struct judge *j, const struct clock *clock) {
    struct shared *shared = j->shared;
    for (size_t i = 0; shared && i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        if (!p->told.final && is_done(p, clock))
            end(j, p);
    }
}

void shared_speaks(struct judge *j) {
    struct shared *shared = j->shared;
    detours_told(j);
    for (size_t i = 0; shared && i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        if (!p->told.final && is_done(p, &j->known))
            end(j, p);
        else if (!p->told.final)
            shared->early = true;
    }
}

bool shared_spoke_early(struct judge *j) {
    enum { MOST = 16 };
    struct shared *shared = j->shared;
    bool early = shared && shared->early && shared->earlies < MOST;
    if (shared)
        shared->early = false;
    if (early)
        shared->earlies++;
    return early;
}

static void tell_begun(struct judge *j) {
    struct shared *shared = j->shared;
    struct {
        unsigned char message, pad[7];
        struct begun at[RECENT];
    } batch = {.message = MESSAGE_MEETINGS};
    size_t n = 0;
    if (shared->nbegun > RECENT && shared->told_begun < shared->nbegun - RECENT)
        shared->told_begun = shared->nbegun - RECENT;
    while (shared->told_begun < shared->nbegun)
        batch.at[n++] = shared->begun[shared->told_begun++ % RECENT];
    if (n)
        post(j, 0, &batch, offsetof(__typeof__(batch), at) + n * sizeof *batch.at);
}

bool shared_tell(struct judge *j, bool all) {
    struct shared *shared = j->shared;
    if (shared && shared->tells_begun)
        tell_begun(j);
    size_t left = 0, n = 0;
    bool later = false;
    if (!shared || shared->npending == 0)
        return false;
    struct shared_batch batch = {.message = MESSAGE_SHARED};
    memcpy(batch.host, j->host, sizeof batch.host);
    char *data = must_alloc(sizeof batch + shared->npending * sizeof(struct shared_use));
    memcpy(data, &batch, sizeof batch);
    for (size_t i = 0; i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        bool old = all || now(j) - p->told.at > BEFORE_TELLING;
        if (p->told.final ? p->sent || !p->told.taken_back : !p->sent && old) {
            if (!p->told.final)
                p->told.done = now(j);
            p->sent = true;
            memcpy(data + sizeof batch + n++ * sizeof p->told, &p->told, sizeof p->told);
        }
        later |= !p->sent;
        if (!p->told.final)
            shared->pending[left++] = *p;
    }
    shared->npending = left;
    if (n)
        post(j, 0, data, sizeof batch + n * sizeof(struct shared_use));
    free(data);
    return later;
}

/* --- On rank 0 -------------------------------------------------------------------- */

/* When the process had last heard of others before it called this. */
static double heard_before(const struct judge *j, const struct heard_use *of) {
    const struct shared_use *use = &of->told;
    const struct meeting *meeting =
        use->meeting ? map_get(&j->shared->meetings, use->meeting) : NULL;
    if (!meeting || meeting->n < j->nranks)
        return use->heard;
    double last = meeting->last;
    if (meeting->told > 0 && meeting->root != of->world)
        last = meeting->told > use->before ? meeting->told : use->before;
    last = last > use->apart ? last : use->apart;
    return last < use->heard ? last : use->heard;
}

/* Whether a may come before b. */
static bool may_be_before(const struct judge *j, const struct heard_use *a,
                          const struct heard_use *b) {
    return a->told.done <= heard_before(j, b);
}

static void add_use(struct judge *j, struct text *text, const struct heard_use *use) {
    char where[JUDGE_PLACE];
    text_add(text, "  rank %d on %s: %s at %s %s bytes %llu to %llu\n", use->world,
             use->host, use->told.call, place(j, use->told.site, where),
             use->told.write ? "writes" : "reads", (unsigned long long)use->told.from,
             (unsigned long long)use->told.to - 1);
}

static void add_memory(struct judge *j, struct text *text,
                       const struct heard_use *owner) {
    char where[JUDGE_PLACE];
    text_add(text, "  the buffer: %llu bytes of rank %d's device memory, made at %s\n",
             (unsigned long long)owner->told.bytes, owner->world,
             place(j, owner->told.made, where));
}

static void say(struct judge *j, const struct heard_use *a, const struct heard_use *b) {
    const struct heard_use *owner = a->told.own ? a : b->told.own ? b : NULL;
    struct text text = {0};
    if (b->told.write && !a->told.write) {
        const struct heard_use *first = a;
        a = b;
        b = first;
    }
    text_add(&text,
             "race: two ranks use the same memory, and nothing between them puts that"
             " in order\n");
    add_use(j, &text, a);
    add_use(j, &text, b);
    if (owner)
        add_memory(j, &text, owner);
    text_add(&text,
             "  Hint: the one waits for its own operation (cudaStreamSynchronize), then"
             " tells the other, by a message\n"
             "        or MPI_Barrier; the other hears that before it makes its call.\n");
    report(j, &text, true,
           mixed(a->told.site < b->told.site ? a->told.site : b->told.site,
                 a->told.site < b->told.site ? b->told.site : a->told.site));
}

static void say_gone(struct judge *j, const struct heard_use *owner,
                     const struct heard_use *other) {
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: %s frees what another rank has open, and nothing between them puts"
             " that in order\n"
             "  rank %d on %s: %s at %s\n",
             owner->told.call, owner->world, owner->host, owner->told.call,
             place(j, owner->told.site, where));
    if (other->told.gone)
        text_add(&text, "  rank %d on %s: %s at %s closes it\n", other->world,
                 other->host, other->told.call, place(j, other->told.site, where));
    else
        add_use(j, &text, other);
    add_memory(j, &text, owner);
    text_add(&text,
             "  Hint: the others close it first (cudaIpcCloseMemHandle), and tell the"
             " owner, by a message\n"
             "        or MPI_Barrier; the owner hears that before it frees.\n");
    report(j, &text, true, mixed(owner->told.site, other->told.site));
}

/* The one frees, the other uses or closes: not memory that came to be there later. */
static bool gone_too_early(const struct judge *j, const struct heard_use *owner,
                           const struct heard_use *other) {
    return owner->told.own && owner->told.gone && other->told.opened < owner->told.at &&
           !may_be_before(j, other, owner);
}

static void compare(struct judge *j, const struct memory *memory,
                    const struct heard_use *a) {
    for (size_t i = 0; i < memory->n; i++) {
        const struct heard_use *b = &memory->at[i];
        if (b->world == a->world)
            continue;
        bool early = gone_too_early(j, a, b);
        if (early || gone_too_early(j, b, a)) {
            say_gone(j, early ? a : b, early ? b : a);
            return;
        }
        if (a->told.gone || b->told.gone || !(a->told.write || b->told.write) ||
            b->told.to <= a->told.from || a->told.to <= b->told.from ||
            may_be_before(j, a, b) || may_be_before(j, b, a))
            continue;
        say(j, a, b);
        return;
    }
}

static void hear(struct judge *j, int from, const char *host,
                 const struct shared_use *told) {
    struct shared *shared = shared_of(j);
    struct memory *memory = map_get(&shared->memories, told->memory);
    size_t i = 0;
    if (!memory)
        map_put(&shared->memories, told->memory, memory = must_alloc(sizeof *memory));
    while (i < memory->n &&
           (memory->at[i].world != from || memory->at[i].told.number != told->number))
        i++;
    if (told->taken_back) {
        if (i < memory->n)
            memory->at[i] = memory->at[--memory->n];
        return;
    }
    if (i == KEPT) { // the oldest
        memmove(memory->at, memory->at + 1, --memory->n * sizeof *memory->at);
        i--;
    }
    ROOM(memory->at, i, &memory->size);
    memory->n += i == memory->n;
    struct heard_use *use = &memory->at[i];
    use->told = *told;
    use->told.call[NAME - 1] = '\0';
    use->world = from;
    snprintf(use->host, sizeof use->host, "%.*s", JUDGE_HOST - 1, host);
    compare(j, memory, use);
}

/* All have begun it: what was heard in it may be less than it seemed. */
static void look_again(struct judge *j, uint64_t meeting) {
    struct shared *shared = j->shared;
    for (size_t m = 0; m < shared->memories.size; m++) {
        const struct memory *memory = shared->memories.at[m].value;
        for (size_t i = 0; memory && i < memory->n && !j->over; i++)
            if (memory->at[i].told.meeting == meeting)
                compare(j, memory, &memory->at[i]);
    }
}

void shared_receive_meetings(struct judge *j, int from, const void *data, size_t bytes) {
    struct shared *shared = shared_of(j);
    struct begun begun;
    const char *at = (const char *)data + 8, *end = (const char *)data + bytes;
    for (; at + sizeof begun <= end; at += sizeof begun) {
        memcpy(&begun, at, sizeof begun);
        struct meeting *meeting = map_get(&shared->meetings, begun.meeting);
        if (!meeting && begun.meeting >= shared->oldest)
            map_put(&shared->meetings, begun.meeting,
                    meeting = must_alloc(sizeof *meeting));
        for (; shared->oldest + MEETINGS < begun.meeting; shared->oldest++) {
            free(map_get(&shared->meetings, shared->oldest));
            map_put(&shared->meetings, shared->oldest, NULL);
        }
        if (!meeting)
            continue;
        meeting->last = begun.at > meeting->last ? begun.at : meeting->last;
        meeting->root = (int)begun.root;
        if (begun.root == from)
            meeting->told = begun.at;
        if (++meeting->n == j->nranks)
            look_again(j, begun.meeting);
    }
}

void shared_receive(struct judge *j, int from, const void *data, size_t bytes) {
    struct shared_batch batch;
    struct shared_use told;
    const char *at = data;
    if (bytes < sizeof batch)
        return;
    if (bytes == sizeof batch && from == 0) { // asks for meetings
        shared_of(j)->tells_begun = true;
        return;
    }
    struct shared_batch asks = {.message = MESSAGE_SHARED};
    for (int to = 1; to < j->nranks && !shared_of(j)->asked; to++)
        post(j, to, &asks, sizeof asks);
    shared_of(j)->asked = true;
    memcpy(&batch, at, sizeof batch);
    batch.host[JUDGE_HOST - 1] = '\0';
    for (at += sizeof batch; at + sizeof told <= (const char *)data + bytes;
         at += sizeof told) {
        memcpy(&told, at, sizeof told);
        hear(j, from, batch.host, &told);
    }
}

void shared_free(struct judge *j) {
    struct shared *shared = j->shared;
    if (!shared)
        return;
    for (size_t i = 0; i < shared->memories.size; i++) {
        struct memory *memory = shared->memories.at[i].value;
        if (memory)
            free(memory->at);
        free(memory);
    }
    map_free(&shared->memories);
    for (size_t i = 0; i < shared->meetings.size; i++)
        free(shared->meetings.at[i].value);
    map_free(&shared->meetings);
    free(shared->pending);
    free(shared);
    j->shared = NULL;
}
