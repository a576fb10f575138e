/*
 * windows.c: puts into windows, and what the other rank does there: it has deregistered
 * the window, or reads the bytes. All is told to the communicator's keeper.
 *
 * Which came first is known only where all ranks have met, in a barrier or when they
 * registered the window. A put after a barrier comes after what was deregistered before
 * it. A put and a read are a race if each of the two ranks has heard nothing from others
 * since they met: then neither can come after the other.
 *
 * nccl.h, ncclPutSignal: "peerWin: memory window object registered by the target peer";
 * NCCL User Guide, "One-sided communication".
 */
#include "ranks/windows.h"

#include "base/post.h"
#include "memory/allocations.h"
#include "ranks/comms.h"

enum { PLACES = 4096 }; // that are told of

struct did {
    enum { GONE, PUT, READ } what;
    int32_t owner;             // whose part of the window it is, in comm
    uint64_t window, from, to; // its bytes
};

struct own_window {
    int comm;
    struct did read; // all of it; of addresses
};

struct told {
    unsigned char message, pad[7];
    struct did did;
    uint64_t comm, site, common; // j->common
    uint64_t meetings;           // left before the put, entered before it was gone
    int32_t world, pad_too;      // who tells
    char call[CALL_NAME], host[JUDGE_HOST];
    struct told *next; // the keeper's, of the same rank's part of the same window
};

/* A place that puts or reads again and again is told of ever more seldom. */
static void tell(struct judge *j, int number, struct did did, struct judge_at at) {
    const struct comm *comm = comm_of(j, number);
    uint64_t key = mixed(mixed((uint64_t)number, did.window), mixed(did.from, did.to));
    key = mixed(key + (uint64_t)did.owner, at.site + (j->common != 0));
    uintptr_t times = (uintptr_t)map_get(&j->places, key);
    if (!comm || comm->keeper < 0 || j->options.mode == JUDGE_OFF ||
        (!times && j->places.used == PLACES))
        return;
    map_put(&j->places, key, (void *)(times + 1));
    if (times & (times - 1))
        return;
    struct told told = {.message = MESSAGE_WINDOW,
                        .did = did,
                        .comm = comm->facts.id,
                        .site = at.site,
                        .common = j->common,
                        .meetings = did.what == PUT ? j->met : j->meetings,
                        .world = j->rank};
    name_call(told.call, at.call);
    memcpy(told.host, j->host, sizeof told.host);
    post(j, comm->keeper, &told, sizeof told);
}

void windows_news(struct judge *j, int slot) {
    j->common = 0;
    if (slot >= 0)
        j->order->slots[slot].news = j->order->slots[slot].count;
}

void windows_meet(struct judge *j, uint64_t where) {
    j->common = j->shares_events || j->threads->next ? 0 : where;
    for (int s = 0; s < j->order->nslots && j->common; s++)
        if (!clock_covers(&j->known, s, j->order->slots[s].news))
            j->common = 0; // they may come later
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
    windows_meet(j, more ? 0 : mixed(comm->facts.id, window));
    return window;
}

void judge_window_gone(struct judge *j, int comm, uint64_t window, struct judge_at at) {
    for (size_t i = j->nown; i-- > 0;) {
        struct own_window *own = &j->own[i];
        if (own->comm == comm && own->read.window == window) {
            own->read.what = GONE;
            tell(j, comm, own->read, at);
            *own = j->own[--j->nown];
        }
    }
}

void windows_put(struct judge *j, const struct judge_put *put) {
    struct did did = {PUT, put->peer, put->window, put->from, put->from + put->bytes};
    if (!put->later)
        tell(j, put->comm, did, put->at);
}

void windows_use(struct judge *j, const struct judge_range *ranges, int n,
                 struct judge_at at) {
    for (int r = 0; r < n && j->common && j->nown; r++) {
        uint64_t from = address_of(ranges[r].start), to = from + ranges[r].bytes;
        const struct allocation *a = allocation_find(j->uses, from);
        for (size_t i = 0; i < j->nown && !ranges[r].write; i++) {
            struct did did = j->own[i].read;
            if (from >= did.to || to <= did.from)
                continue;
            did.to = (to < did.to ? to : did.to) - did.from;
            did.from = from > did.from ? from - did.from : 0;
            tell(j, j->own[i].comm, did, at);
        }
        if (a && (a->open || a->kind == JUDGE_PEER))
            windows_news(j, -1); // other processes write there
    }
}

static void compare(struct judge *j, const struct told *put, const struct told *other) {
    const struct did *a = &put->did, *b = &other->did;
    uint64_t from = a->from > b->from ? a->from : b->from;
    uint64_t to = a->to < b->to ? a->to : b->to;
    bool gone = b->what == GONE && put->meetings > other->meetings;
    bool race = b->what == READ && put->common == other->common && from < to &&
                put->world != other->world;
    if (a->what != PUT || !(gone || race))
        return;
    struct finding f = {.name = race ? FINDING_race_window : FINDING_memory_window_gone,
                        .site = put->site,
                        .other = other->site};
    set(&f, "call", "%s", put->call);
    set(&f, "put", "rank %d on %s: %s at %s", put->world, put->host, put->call,
        place(j, put->site));
    set(&f, "other", "rank %d on %s: %s at %s", other->world, other->host, other->call,
        place(j, other->site));
    set(&f, "bytes", "%llu to %llu of rank %d's part of the window",
        (unsigned long long)from, (unsigned long long)to - 1, other->world);
    say(j, &f);
}

void windows_receive(struct judge *j, const void *data, size_t bytes) {
    struct told *told = must_alloc(sizeof *told);
    memcpy(told, data, bytes < sizeof *told ? bytes : sizeof *told);
    uint64_t key = mixed(mixed(told->comm, told->did.window), (uint64_t)told->did.owner);
    told->next = map_get(&j->windows, key);
    map_put(&j->windows, key, told);
    for (const struct told *other = told->next; other; other = other->next) {
        compare(j, told, other);
        compare(j, other, told);
    }
}

static void told_free(void *told) {
    for (struct told *next; told; told = next) {
        next = ((struct told *)told)->next;
        free(told);
    }
}

void windows_free(struct judge *j) {
    map_clear(&j->windows, told_free);
    map_free(&j->places);
    free(j->own);
}
