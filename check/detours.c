/*
 * detours.c: order that goes by way of other ranks.
 *
 * What a rank receives was sent: ncclRecv "is blocking for the GPU" until it is. So an
 * operation that stands before a send is over when the peer has received, and when the
 * peer's answer is here. No event and no wait on this rank says so. A race with such an
 * operation is kept back, and the other ranks are asked: which of your calls had to wait
 * for these of mine, what came behind those, and when did you first say anything to
 * anybody when you knew them to be done? Asked again with what they answer, until nobody
 * adds anything. Is one of the calls found that the use itself comes behind, or did
 * somebody say it early enough for this rank to have heard of it, then there may be an
 * order, and nothing is said. Otherwise the race is.
 *
 * NCCL User Guide, "Point-to-point communication" and "CUDA Stream Semantics".
 */
#include "facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 1024,   // calls that are remembered
    WIDE = 1024,   // slots: with more, calls take too much room
    MOST = 512,    // calls in one question
    SUSPECTS = 64, // races that are kept back
    OFTEN = 2      // in order as often: the next of the same two places is, too
};

struct passing { // a call, as all of its ranks name it
    uint64_t comm, seq;
    int32_t from, to; // a send's ranks in the communicator; -1: a collective
    int32_t source;   // the rank whose part comes behind what the question is about
    int32_t pad;
};

struct names {
    struct passing *at;
    size_t n, size;
};

struct passed { // a call of this process
    struct passing name;
    int kind, root, rank;
    bool empty; // of no elements: it waits for nobody
    int slot;
    uint64_t at, group; // at: in its slot
    struct clock clock;
    double issued, known; // known: to be done; 0: not yet
    double told;          // when others may have heard that it is; 0: not yet
};

struct question {
    unsigned char message, pad[7];
    uint64_t number;
    double since; // what was issued from then on may come behind it, too
    char host[JUDGE_HOST];
};

struct reply {
    unsigned char message, unclear, pad[6];
    uint64_t number;
    double told; // when others may have heard first that one of the calls is done
};

struct suspect {
    struct text text;
    uint64_t key, number;
    struct clock clock; // the later use's
    double heard;       // from anybody, before the later one
    struct names names;
    size_t asked;
    size_t calls;                // this process had made so many
    int waits;                   // for so many replies
    bool begun, unclear, sooner; // sooner: `told` is earlier than they were asked for
    double told;
    struct suspect *next;
};

struct detours {
    struct passed *at; // a ring
    size_t n;          // so far
    size_t size;
    struct suspect *suspects;
    size_t nsuspects;
    uint64_t number;
    struct map in_order; // by key: how often
    size_t known_from;   // before it, all are known to be done
    size_t told_from;    // and others may have heard of it
    bool unseen;         // others hear in ways that are no events
};

static struct detours *detours_of(struct judge *j) {
    if (!j->detours)
        j->detours = must_alloc(sizeof *j->detours);
    return j->detours;
}

/* --- The calls of this process ------------------------------------------------------ */

static struct passed *call_at(const struct detours *d, size_t i) {
    return &d->at[i % KEPT];
}

static size_t oldest(const struct detours *d) {
    return d->n > KEPT ? d->n - KEPT : 0;
}

void detours_called(struct judge *j, const struct fact *fact, struct position at) {
    struct detours *d = detours_of(j);
    bool pair = pairs(fact->kind), sends = fact->kind == JUDGE_SEND;
    if (fact->nranks < 2 || at.slot < 0 || (pair && fact->root == fact->rank) ||
        at.clock->n > WIDE)
        return;
    if (d->n < KEPT)
        ROOM(d->at, d->n, &d->size);
    struct passed *call = call_at(d, d->n++);
    struct clock clock = call->clock; // its memory is used again
    clock_copy(&clock, at.clock);
    *call = (struct passed){.name = {.comm = fact->comm,
                                     .seq = fact->seq,
                                     .from = !pair   ? -1
                                             : sends ? fact->rank
                                                     : fact->root,
                                     .to = !pair   ? -1
                                           : sends ? fact->root
                                                   : fact->rank,
                                     .source = fact->rank},
                            .kind = fact->kind,
                            .root = fact->root,
                            .rank = fact->rank,
                            .empty = fact->count == 0,
                            .slot = at.slot,
                            .at = at.seq,
                            .group = at.group,
                            .clock = clock,
                            .issued = now(j)};
}

void detours_taken_back(struct judge *j, const struct fact *fact) {
    struct detours *d = detours_of(j);
    for (size_t i = d->n; i-- > oldest(d);) {
        struct passed *call = call_at(d, i);
        if (call->name.comm == fact->comm && call->rank == fact->rank &&
            call->kind == fact->kind && call->name.seq == fact->seq) {
            call->empty = true;
            call->name.comm = 0;
            return;
        }
    }
}

void detours_known(struct judge *j) {
    struct detours *d = j->detours;
    if (!d)
        return;
    bool all = true;
    size_t i = d->known_from > oldest(d) ? d->known_from : oldest(d);
    for (; i < d->n; i++) {
        struct passed *call = call_at(d, i);
        if (call->known == 0 && clock_covers(&j->known, call->slot, call->at))
            call->known = now(j);
        all &= call->known > 0;
        if (all)
            d->known_from = i + 1;
    }
    if (d->unseen)
        detours_told(j);
}

void detours_told(struct judge *j) {
    struct detours *d = j->detours;
    bool all = true;
    size_t i = !d ? 0 : d->told_from > oldest(d) ? d->told_from : oldest(d);
    for (; d && i < d->n; i++) {
        struct passed *call = call_at(d, i);
        if (call->told == 0 && call->known > 0)
            call->told = now(j);
        all &= call->told > 0;
        if (all)
            d->told_from = i + 1;
    }
}

void detours_unseen(struct judge *j) {
    detours_told(j);
    detours_of(j)->unseen = true;
}

/* The same call, or one of the same ranks that follows it: what is called on one
 * communicator happens in turn, whatever the streams (seen on two H200). */
static bool follows(const struct passing *a, const struct passing *b) {
    return a->comm == b->comm && a->seq >= b->seq && a->from == b->from && a->to == b->to;
}

static bool gets_from(const struct passed *call, int source) {
    return !call->empty && part_needs(call->kind, call->root, call->rank, source);
}

/* From anybody: from the root or the peer, or, as root, from another. */
static bool gets(const struct passed *call) {
    return gets_from(call, call->root != call->rank ? call->root : call->rank + 1);
}

/* Whether a call begins only when what is at that place has ended. */
static bool behind(const struct passed *call, int slot, uint64_t at, uint64_t group) {
    return !call->empty && call->kind != JUDGE_RECV &&
           clock_covers(&call->clock, slot, at) &&
           !(call->slot == slot && call->at == at) && !(group && call->group == group);
}

/* --- Questions ---------------------------------------------------------------------- */

/* Of the calls of one kind to the same ranks, the first will do. */
static void add_name(struct names *names, const struct passing *name) {
    for (size_t i = 0; i < names->n; i++) {
        const struct passing *known = &names->at[i];
        if (known->comm == name->comm && known->from == name->from &&
            known->to == name->to && known->source == name->source &&
            known->seq <= name->seq)
            return;
    }
    ROOM(names->at, names->n, &names->size);
    names->at[names->n++] = *name;
}

/* What comes behind these calls, of this process's. */
static void follow(struct judge *j, const struct passing *asked, size_t n, double since,
                   struct names *found, double *told) {
    struct detours *d = detours_of(j);
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = call_at(d, i);
        bool later = call->issued >= since && call->kind != JUDGE_RECV && !call->empty;
        for (size_t k = 0; k < n; k++) {
            if (!follows(&call->name, &asked[k]) || !gets_from(call, asked[k].source))
                continue;
            if (call->told > 0 && call->told < *told)
                *told = call->told;
            for (size_t m = i + 1; m < d->n; m++)
                if (behind(call_at(d, m), call->slot, call->at, call->group))
                    add_name(found, &call_at(d, m)->name);
        }
        if (later)
            add_name(found, &call->name);
    }
}

void detours_asked(struct judge *j, int from, const void *data, size_t bytes) {
    struct question question;
    struct names names = {0};
    if (bytes < sizeof question)
        return;
    memcpy(&question, data, sizeof question);
    size_t n = (bytes - sizeof question) / sizeof(struct passing);
    struct passing *asked = must_alloc((n + 1) * sizeof *asked);
    memcpy(asked, (const char *)data + sizeof question, n * sizeof *asked);
    struct reply reply = {
        .message = MESSAGE_REPLY, .number = question.number, .told = INFINITY};
    follow(j, asked, n, question.since, &names, &reply.told);
    // Two machines have two clocks.
    if (strncmp(question.host, j->host, sizeof question.host) != 0)
        reply.unclear = reply.told < INFINITY || !isinf(question.since);
    char *out = must_alloc(sizeof reply + (names.n + 1) * sizeof *names.at);
    memcpy(out, &reply, sizeof reply);
    if (names.n)
        memcpy(out + sizeof reply, names.at, names.n * sizeof *names.at);
    post(j, from, out, sizeof reply + names.n * sizeof *names.at);
    free(out);
    free(asked);
    free(names.at);
}

/* --- Races that are kept back ------------------------------------------------------- */

static void suspect_free(struct suspect *s) {
    free(s->text.at);
    free(s->names.at);
    clock_free(&s->clock);
    free(s);
}

static void ask(struct judge *j, struct suspect *s) {
    struct question question = {
        .message = MESSAGE_QUESTION, .number = s->number, .since = s->told};
    size_t n = s->names.n - s->asked;
    memcpy(question.host, j->host, sizeof question.host);
    char *out = must_alloc(sizeof question + n * sizeof *s->names.at);
    memcpy(out, &question, sizeof question);
    memcpy(out + sizeof question, s->names.at + s->asked, n * sizeof *s->names.at);
    s->asked = s->names.n;
    s->sooner = false;
    for (int to = 0; to < j->nranks; to++) {
        post(j, to, out, sizeof question + n * sizeof *s->names.at);
        s->waits++;
    }
    free(out);
}

/* Whether the later use comes behind one of the calls that the others name, or behind the
 * news. */
static bool in_order(const struct detours *d, const struct suspect *s) {
    if (s->unclear || s->names.n > MOST || s->told <= s->heard ||
        d->n - s->calls > KEPT / 2)
        return true;
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = call_at(d, i);
        for (size_t k = 0; k < s->names.n; k++)
            if (follows(&call->name, &s->names.at[k]) &&
                gets_from(call, s->names.at[k].source) &&
                clock_covers(&s->clock, call->slot, call->at))
                return true;
    }
    return false;
}

/* Whether others have yet to do their part of what the later use comes behind. */
static bool too_early(const struct detours *d, const struct suspect *s) {
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = call_at(d, i);
        if (call->known == 0 && gets(call) &&
            clock_covers(&s->clock, call->slot, call->at))
            return true;
    }
    return false;
}

static void take_out(struct detours *d, struct suspect *s) {
    struct suspect **at = &d->suspects;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    d->nsuspects--;
}

/* Takes it out, and says it, if nothing puts it in order. */
static void decide(struct judge *j, struct suspect *s) {
    struct detours *d = j->detours;
    take_out(d, s);
    if (in_order(d, s)) {
        uintptr_t often = (uintptr_t)map_get(&d->in_order, s->key);
        map_put(&d->in_order, s->key, (void *)(often + 1));
    } else {
        report(j, &s->text, true, s->key);
    }
    suspect_free(s);
}

void detours_replied(struct judge *j, const void *data, size_t bytes) {
    struct reply reply;
    struct detours *d = j->detours;
    if (!d || bytes < sizeof reply)
        return;
    memcpy(&reply, data, sizeof reply);
    struct suspect *s = d->suspects;
    while (s && s->number != reply.number)
        s = s->next;
    if (!s)
        return;
    struct passing name;
    const char *at = (const char *)data + sizeof reply;
    for (size_t left = bytes - sizeof reply; left >= sizeof name;
         left -= sizeof name, at += sizeof name) {
        memcpy(&name, at, sizeof name);
        add_name(&s->names, &name);
    }
    s->unclear |= reply.unclear;
    if (reply.told < s->told) {
        s->told = reply.told;
        s->sooner = true;
    }
    if (--s->waits > 0)
        return;
    if ((s->names.n > s->asked || s->sooner) && !in_order(d, s))
        ask(j, s);
    else
        decide(j, s);
}

bool detours_look(struct judge *j) {
    struct detours *d = j->detours;
    struct suspect *next;
    for (struct suspect *s = d ? d->suspects : NULL; s; s = next) {
        next = s->next;
        if (s->begun || too_early(d, s))
            continue;
        s->begun = true;
        ask(j, s);
    }
    return d && d->suspects;
}

bool detours_undecided(const struct judge *j) {
    const struct detours *d = j->detours;
    for (const struct suspect *s = d && !j->over ? d->suspects : NULL; s; s = s->next)
        if (s->begun || !too_early(d, s))
            return true;
    return false;
}

/* The later use comes behind something that others may have done, or this rank has heard
 * of others: since the first of these calls was made. */
static bool heard_since(const struct detours *d, double since, double heard,
                        const struct clock *clock) {
    if (heard >= since)
        return true;
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = call_at(d, i);
        if (gets(call) && (call->known == 0 || call->known >= since) &&
            clock_covers(clock, call->slot, call->at))
            return true;
    }
    return false;
}

bool detours_may_order(struct judge *j, const struct use *first,
                       const struct clock *clock, double heard, struct text *text,
                       uint64_t key) {
    struct detours *d = j->detours;
    double since = INFINITY;
    uint64_t group = 0;
    struct names names = {0};
    if (!d || d->known_from == d->n)
        return false;
    for (size_t i = oldest(d); i < d->n; i++)
        if (call_at(d, i)->slot == first->slot && call_at(d, i)->at == first->seq)
            group = call_at(d, i)->group;
    for (size_t i = oldest(d); i < d->n; i++) {
        const struct passed *call = call_at(d, i);
        if (!behind(call, first->slot, first->seq, group))
            continue;
        since = call->issued < since ? call->issued : since;
        add_name(&names, &call->name);
    }
    bool often = (uintptr_t)map_get(&d->in_order, key) >= OFTEN,
         may = names.n > 0 && heard_since(d, since, heard, clock);
    if (!may || often || d->nsuspects == SUSPECTS) {
        free(names.at);
        if (may)
            free(text->at);
        return may;
    }
    struct suspect *s = must_alloc(sizeof *s);
    *s = (struct suspect){.text = *text,
                          .key = key,
                          .number = ++d->number,
                          .heard = heard,
                          .names = names,
                          .calls = d->n,
                          .told = INFINITY,
                          .next = d->suspects};
    clock_copy(&s->clock, clock);
    *text = (struct text){0};
    d->suspects = s;
    d->nsuspects++;
    return true;
}

void detours_free(struct judge *j) {
    struct detours *d = j->detours;
    if (!d)
        return;
    for (size_t i = 0; i < d->n && i < KEPT; i++)
        clock_free(&d->at[i].clock);
    while (d->suspects) {
        struct suspect *s = d->suspects;
        d->suspects = s->next;
        suspect_free(s);
    }
    map_free(&d->in_order);
    free(d->at);
    free(d);
    j->detours = NULL;
}
