/*
 * windows.c: puts into windows, and what the other rank does there: it has deregistered
 * the window, or reads the bytes. All is told to the communicator's keeper.
 *
 * When all ranks meet, in a barrier, in a collective, or when they register a window, an
 * epoch begins, and only what two ranks do in the same epoch is compared. As long as a
 * rank hears of others through signals alone, it tells where in its streams its puts,
 * reads and signals are, and which signals it had waited for by then. The keeper joins
 * these clocks: the n-th signal for which a rank has waited brings it all that came
 * before that signal on the other rank. A put and a read of which neither comes before
 * the other are a race. What a rank does after it may have heard of others in another way
 * is not told, nor can anything be said of what comes after its signals. Of ranks that
 * have no MPI to meet by, nothing is said.
 *
 * A put into a deregistered window is wrong if a barrier lies between the two.
 *
 * nccl.h, ncclPutSignal: "peerWin: memory window object registered by the target peer";
 * NCCL User Guide, "One-sided communication".
 */
#include "history/windows.h"

#include "base/messages.h"
#include "history/allocations.h"
#include "ranks/comms.h"

#include <stdio.h>

/* Of the epochs that begin at one place, OFTEN are told of, and then ever fewer. Of one
 * epoch a rank tells of MOST operations, and of none that comes after HEARD slots and
 * kinds of signals. A keeper has KEPT in mind. */
enum { OFTEN = 16, MOST = 512, HEARD = 128, KEPT = 4096 };

struct did {
    enum { GONE, PUT, READ, SIGNAL } what;
    int32_t owner;             // whose part of the window it is, in comm
    uint64_t window, from, to; // its bytes
};

struct own_window {
    int comm;
    struct did read; // all of it; of addresses
};

struct count { // of a slot's operations, or of signals, which have an odd id
    uint64_t id, n;
};

struct told {
    unsigned char message;
    bool placed;   // the keeper's, as the clock
    int32_t world; // who tells
    struct did did;
    // Meetings left before the put, entered before it was gone; signals like the one that
    // is sent, before the epoch.
    uint64_t comm, site, epoch, meetings, earlier;
    struct count at, sent; // its place; the signal that it sends (id 0: none, of which
                           // nobody hears)
    char words[CALL_NAME + JUDGE_HOST + 32];
    struct clock clock;
    size_t nheard;
    struct count heard[HEARD]; // what it comes after
};

/* Whether what is in the slot now is told of, and what of its clock. */
static bool in_epoch(struct judge *j, int slot, struct told *told) {
    const struct slot *slots = j->order->slots;
    const struct clock *clock = &slots[slot].clock;
    if (j->threads->next || !clock_covers(clock, j->since.slot, j->since.seq))
        j->epoch = 0;
    if (j->epoch && j->ntold++ == 0) {
        uintptr_t times = (uintptr_t)map_get(&j->places, told->site);
        map_put(&j->places, told->site, (void *)(times + 1));
        j->ntold = times >= OFTEN && times & (times - 1) ? MOST : 1;
    }
    for (int s = 0; s < clock->n && told->nheard < HEARD; s++) {
        uint64_t id = slots[s].id ? slots[s].id : 2 * mixed(j->rank + 1u, (uint64_t)s);
        if (clock->at[s] > slots[s].earlier)
            told->heard[told->nheard++] = (struct count){id, clock->at[s]};
        if (s == slot)
            told->at = (struct count){id, slots[s].count};
    }
    told->epoch = j->epoch;
    return j->epoch && j->ntold < MOST && told->nheard < HEARD;
}

/* `slot`: of which it is the newest operation; -1: of none. */
static void tell(struct judge *j, int number, struct told told, int slot,
                 struct judge_at at) {
    const struct comm *comm = comm_of(j, number);
    told.site = at.site;
    if (!comm || comm->keeper < 0 || j->options.mode == JUDGE_OFF ||
        (slot >= 0 && !in_epoch(j, slot, &told)))
        return;
    told.message = MESSAGE_WINDOW;
    told.world = j->rank;
    told.comm = comm->facts.id;
    told.meetings = told.did.what == PUT ? j->met : j->meetings;
    snprintf(told.words, sizeof told.words, "rank %d on %s: %s", j->rank, j->host,
             at.call);
    message_send(j, comm->keeper, &told,
                 sizeof told - (HEARD - told.nheard) * sizeof told.at);
}

void windows_news(struct judge *j, int slot) {
    j->epoch = 0;
    if (slot >= 0)
        j->order->slots[slot].news = j->order->slots[slot].count;
}

void windows_meet(struct judge *j, uint64_t where, int slot) {
    struct slot *slots = j->order->slots;
    const struct clock *over = slot < 0 ? &j->known : &slots[slot].clock;
    j->epoch = j->options.unseen || j->shares_events || j->threads->next ? 0 : where;
    j->since = (struct record){.slot = slot < 0 ? 0 : slot,
                               .seq = slot < 0 ? 0 : slots[slot].count};
    j->ntold = 0;
    for (int s = 0; s < j->order->nslots; s++) {
        slots[s].earlier = slots[s].count;
        if (!clock_covers(over, s, slots[s].news))
            j->epoch = 0; // they may come later
    }
}

void windows_call(struct judge *j, const struct judge_call *call, int slot) {
    const struct comm *comm = comm_of(j, call->comm);
    uint64_t epoch = j->epoch;
    windows_news(j, slot);
    if (epoch && comm && slot >= 0 && call->count > 0 && part_needs(call->kind, -1, 0, 1))
        windows_meet(j, mixed(epoch + comm->facts.id, comm->collectives), slot);
}

uint64_t judge_window_made(struct judge *j, int number, const void *start, size_t bytes,
                           bool more) {
    const struct comm *comm = comm_of(j, number);
    if (!comm)
        return 0;
    uint64_t window = comm->collectives, from = address_of(start);
    ROOM(j->own, j->nown, &j->own_size);
    j->own[j->nown++] =
        (struct own_window){number, {READ, comm->facts.rank, window, from, from + bytes}};
    windows_meet(j, more ? 0 : mixed(comm->facts.id, window), -1);
    return window;
}

void judge_window_gone(struct judge *j, int comm, uint64_t window, struct judge_at at) {
    for (size_t i = j->nown; i-- > 0;) {
        struct own_window own = j->own[i];
        if (own.comm != comm || own.read.window != window)
            continue;
        own.read.what = GONE;
        tell(j, comm, (struct told){.did = own.read}, -1, at);
        j->own[i] = j->own[--j->nown];
    }
}

/* The slot of which clocks say how many of these signals are known. */
static int slot_of(struct judge *j, uint64_t id) {
    struct order *order = j->order;
    for (int s = 0; s < order->nslots; s++)
        if (order->slots[s].id == id)
            return s;
    ROOM(order->slots, (size_t)order->nslots, &order->slots_size);
    order->slots[order->nslots].id = id;
    return order->nslots++;
}

void judge_signals(struct judge *j, struct judge_signal signal, int peer, int index,
                   int waits) {
    const struct stream *stream = order_stream(j->order, signal.stream);
    struct comm *comm = comm_of(j, signal.comm);
    const struct judge_put *put = signal.put;
    if (!stream || !comm)
        return;
    // A graph may be launched often or never: its waits count, and its signals do not.
    if (waits || !(j->threads->next || stream->capture)) {
        struct pair_count *count =
            pair_count(comm, peer, waits ? PAIR_WAITS : PAIR_SIGNALS);
        count->site = signal.at.site;
        count->n++;
    }
    uint64_t me = (uint64_t)comm->facts.rank, other = (uint64_t)peer;
    uint64_t pair = waits ? mixed(other, me) : mixed(me, other);
    uint64_t id = mixed(mixed(comm->facts.id, pair), (uint64_t)index) | 1;
    int s = slot_of(j, waits ? id : id - 1), slot = stream->slot;
    struct slot *mine = &j->order->slots[slot], *signals = &j->order->slots[s];
    if (stream->capture)
        signals->news = UINT64_MAX; // it may be launched at any time
    // In another stream, at the same time: which is which? And in a group each comes
    // after what both streams had before ("CUDA Stream Semantics").
    struct thread *thread = j->thread;
    bool joins = thread->group && thread->signals && thread->signals != signal.stream + 1;
    thread->signals = thread->group ? signal.stream + 1 : 0;
    if (stream->capture || joins || !clock_covers(&mine->clock, s, signals->count))
        j->epoch = 0;
    mine->news = mine->count;
    signals->count += waits ? (uint64_t)waits : 1;
    struct told told = {
        .did.what = SIGNAL, .sent = {id, signals->count}, .earlier = signals->earlier};
    if (put)
        told.did =
            (struct did){PUT, peer, put->window, put->from, put->from + put->bytes};
    if (!waits)
        tell(j, signal.comm, told, slot, signal.at);
    clock_reach(&mine->clock, s, signals->count);
}

void windows_use(struct judge *j, int slot, const struct judge_range *ranges, int n,
                 struct judge_at at) {
    for (int r = 0; r < n && j->epoch && j->nown; r++) {
        uint64_t from = address_of(ranges[r].start), to = from + ranges[r].bytes;
        const struct allocation *a = allocation_find(j->uses, from);
        for (size_t i = 0; i < j->nown && !ranges[r].write; i++) {
            struct did did = j->own[i].read;
            if (from >= did.to || to <= did.from)
                continue;
            did.to = (to < did.to ? to : did.to) - did.from;
            did.from = from > did.from ? from - did.from : 0;
            tell(j, j->own[i].comm, (struct told){.did = did}, slot, at);
        }
        if (a && (a->open || a->kind == JUDGE_PEER))
            windows_news(j, -1); // other processes write there
    }
}

/* The keeper's number of an id, in clocks. */
static int number_of(struct judge *j, uint64_t id) {
    if (!map_get(&j->numbers, id))
        map_put(&j->numbers, id, (void *)(j->numbers.used + 1));
    return (int)(uintptr_t)map_get(&j->numbers, id);
}

static bool is_before(struct judge *j, const struct told *a, const struct told *b) {
    return clock_covers(&b->clock, number_of(j, a->at.id), a->at.n);
}

static void compare(struct judge *j, const struct told *one, const struct told *two) {
    const struct told *put = one->did.what == PUT ? one : two,
                      *other = put == one ? two : one;
    const struct did *a = &put->did, *b = &other->did;
    uint64_t from = a->from > b->from ? a->from : b->from;
    uint64_t to = a->to < b->to ? a->to : b->to;
    bool gone = b->what == GONE && put->meetings > other->meetings;
    bool race = b->what == READ && from < to && put->epoch == other->epoch &&
                put->world != other->world;
    if (a->what != PUT || !(gone || race) || put->comm != other->comm ||
        a->window != b->window || a->owner != b->owner ||
        (race && (is_before(j, put, other) || is_before(j, other, put))))
        return;
    struct finding f = finding(race ? FINDING_race_window : FINDING_memory_window_gone,
                               put->site, other->site);
    set_words_at(j, &f, "put", put->words, put->site);
    set_words_at(j, &f, "other", other->words, other->site);
    set(&f, "bytes", "%llu to %llu of rank %d's part of the window",
        (unsigned long long)from, (unsigned long long)to - 1, other->world);
    say(j, &f);
}

/* False: it comes after a signal of which the sender has not told yet. */
static bool has_place(struct judge *j, struct told *told) {
    for (size_t i = 0; i < told->nheard; i++) {
        struct count heard = told->heard[i];
        uint64_t id = mixed(heard.id, told->epoch);
        const struct told *any = map_get(&j->sent, id);
        const struct told *sent = map_get(&j->sent, mixed(id, heard.n));
        if (heard.id & 1 && !sent && (!any || heard.n > any->earlier))
            return false;
        clock_reach(&told->clock, number_of(j, heard.id), heard.n);
        if (sent)
            clock_join(&told->clock, &sent->clock);
    }
    map_put(&j->sent, mixed(mixed(told->sent.id, told->epoch), told->sent.n), told);
    for (size_t i = 0; i < j->nkept; i++)
        if (j->kept[i]->placed)
            compare(j, told, j->kept[i]);
    return true;
}

static void forget(struct judge *j) {
    while (j->nkept > 0) {
        clock_free(&j->kept[--j->nkept]->clock);
        free(j->kept[j->nkept]);
    }
    map_free(&j->sent);
}

void windows_receive(struct judge *j, const void *data, size_t bytes) {
    struct told *told = must_alloc(bytes);
    memcpy(told, data, bytes);
    if (j->nkept == KEPT)
        forget(j);
    ROOM(j->kept, j->nkept, &j->kept_size);
    j->kept[j->nkept++] = told;
    map_put(&j->sent, mixed(told->sent.id, told->epoch), told);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < j->nkept; i++)
            if (!j->kept[i]->placed && has_place(j, j->kept[i]))
                more = j->kept[i]->placed = true;
    }
}

void windows_free(struct judge *j) {
    forget(j);
    free(j->kept);
    map_free(&j->numbers);
    map_free(&j->places);
    free(j->own);
}
