/*
 * compare.c: what the ranks of a communicator must agree on, compared by one of them all,
 * its keeper.
 *
 * What all ranks agreed on is forgotten. Where they do not agree, the report waits a
 * moment, so that it can name all of them, and so that a call that failed can be taken
 * back.
 *
 * NCCL User Guide, "Collective Operations", "Point-to-point communication", "Using NCCL
 * with CUDA Graphs", "Group Operation Ordering Semantics".
 */
#include "ranks/compare.h"

#include "base/messages.h"
#include "say/finding.h"
#include "say/report.h"
#include "say/words.h"

static const double MOMENT = 0.3; // seconds

struct collective { // of which not all ranks are there, or which they do not agree on
    uint64_t seq;
    int heard, nfacts;
    size_t size;
    struct fact *facts; // those that differ, in a type or their lines at least
    int *of;            // by rank: which of them; -1: not there yet
    double due;         // of the report; 0: they agree
};

struct pair { // sends from one rank to another, or receives, that have no counterpart yet
    struct fact *at;
    size_t first, end, size;
};

struct kept { // a communicator
    uint64_t id;
    int nranks, nended;
    int *world; // by rank; -1: not known
    int *device;
    struct map collectives, pairs, both; // both: struct fact of the first that has it
};

struct misfit { // a send and its receive; or one of each of two ranks
    struct fact send, recv;
    double due;
};

static struct kept *kept_of(struct judge *j, const struct fact *fact) {
    struct compare *compare = j->compare;
    struct kept *kept = map_get(&compare->comms, fact->comm);
    if (kept)
        return kept;
    kept = must_alloc(sizeof *kept);
    kept->id = fact->comm;
    kept->nranks = fact->nranks;
    kept->world = must_alloc((size_t)kept->nranks * sizeof *kept->world);
    kept->device = must_alloc((size_t)kept->nranks * sizeof *kept->device);
    for (int r = 0; r < kept->nranks; r++)
        kept->world[r] = -1;
    map_put(&compare->comms, fact->comm, kept);
    return kept;
}

/* Another rank is about to go wrong too, and rank 0 to see that somebody waits: this
 * tells why. */
static void hold(struct judge *j) {
    struct notice notice = {.message = MESSAGE_JOIN, .what = NOTICE_HOLD};
    memcpy(notice.host, j->host, sizeof notice.host);
    message_send(j, 0, &notice, sizeof notice);
}

static bool offsets_agree(const struct fact *a, const struct fact *b) {
    return (!a->send_offset || !b->send_offset || a->send_offset == b->send_offset) &&
           (!a->recv_offset || !b->recv_offset || a->recv_offset == b->recv_offset);
}

static bool agree(const struct fact *a, const struct fact *b) {
    if (a->captured != b->captured)
        return false;
    if (pairs(a->kind))
        return a->count == b->count && a->type == b->type;
    if (a->kind != b->kind)
        return false;
    return moves_nothing(a->kind) ||
           (a->count == b->count && a->type == b->type && a->redop == b->redop &&
            a->root == b->root && a->config == b->config && offsets_agree(a, b));
}

static const char different_offsets[] = "give different offsets of symmetric windows",
                  different_configs[] = "give different configurations",
                  different_captures[] = "do not all capture the call into a graph";

static const char *difference(const struct fact *a, const struct fact *b) {
    bool pair = pairs(a->kind) && pairs(b->kind);
    return a->both && b->both            ? "are not grouped alike"
           : !pair && a->kind != b->kind ? "call different operations"
           : a->type != b->type          ? "give different data types"
           : a->count != b->count        ? "give different counts"
           : pair                        ? "are not both captured into a graph"
           : a->redop != b->redop        ? "give different reductions"
           : a->root != b->root          ? "give different roots"
           : a->config != b->config      ? different_configs
           : !offsets_agree(a, b)        ? different_offsets
                                         : different_captures;
}

static void add_offset(struct text *text, const char *name, uint64_t offset) {
    if (offset)
        text_add(text, ", %s%llu bytes into its window", name,
                 (unsigned long long)offset - 1);
}

static void add_offsets(struct text *text, const struct fact *f) {
    bool same = f->send_offset == f->recv_offset;
    add_offset(text, same ? "" : "sendbuff ", f->send_offset);
    add_offset(text, "recvbuff ", same ? 0 : f->recv_offset);
}

static const char *const configs[] = {"minCTAs",     "maxCTAs",
                                      "nvlsCTAs",    "cgaClusterSize",
                                      "CTAPolicy",   "launchCompletionEvent",
                                      "algSelection"};

static void add_call(struct judge *j, struct text *text, const struct fact *f,
                     bool by_rank) {
    if (by_rank)
        text_add(text, "  rank %d (device %d) on %s: ", f->rank, f->device,
                 rank_host(j, f->world));
    else
        text_add(text, "  rank %d on %s: ", f->world, rank_host(j, f->world));
    text_add(text, "%s at %s%s", fact_words(f), place(j, f->site),
             f->captured ? ", in a graph" : "");
    add_offsets(text, f);
    for (int i = 0; i < 7; i++)
        if (f->config >> 8 * i & 255)
            text_add(text, i < 6 ? ", %s %d" : ", %s (checksum %d)", configs[i],
                     (int)(f->config >> 8 * i & 255) - 1);
    text_add(text, "\n");
}

static void add_same(struct text *text, const int *ranks, int n, int as) {
    if (n == 0)
        return;
    text_add(text, "  ");
    add_ranks(text, ranks, n);
    text_add(text, ": the same as rank %d\n", as);
}

/* Two ranks that do not agree. */
static bool differ(const struct kept *kept, const struct collective *c,
                   const struct fact **first, const struct fact **other) {
    *first = *other = NULL;
    for (int r = 0; r < kept->nranks; r++) {
        const struct fact *fact = c->of[r] < 0 ? NULL : &c->facts[c->of[r]];
        if (!fact)
            continue;
        if (!*first)
            *first = fact;
        if (!*other && !agree(*first, fact))
            *other = fact;
    }
    return *other != NULL;
}

/* A line for each call that differs, and one for those that make the same. */
static void add_calls(struct judge *j, struct text *text, const struct kept *kept,
                      const struct collective *c) {
    bool by_rank = same_process(kept->world, kept->nranks);
    int *ranks = must_alloc((size_t)kept->nranks * sizeof *ranks);
    bool *said = must_alloc((size_t)c->nfacts * sizeof *said);
    for (int r = 0; r < kept->nranks; r++) {
        if (c->of[r] < 0 || said[c->of[r]])
            continue;
        said[c->of[r]] = true;
        struct fact fact = c->facts[c->of[r]];
        fact.rank = r;
        fact.world = kept->world[r];
        add_call(j, text, &fact, by_rank);
        int n = 0;
        for (int q = r + 1; q < kept->nranks; q++)
            if (c->of[q] == c->of[r])
                ranks[n++] = by_rank ? q : kept->world[q];
        add_same(text, ranks, n, by_rank ? r : kept->world[r]);
    }
    int absent = 0;
    for (int r = 0; r < kept->nranks; r++)
        if (c->of[r] < 0)
            ranks[absent++] = r;
    if (absent) {
        text_add(text, "  ");
        add_ranks(text, ranks, absent);
        text_add(text, " of the communicator: not there yet\n");
    }
    free(ranks);
    free(said);
}

static void say_collective(struct judge *j, struct kept *kept, struct collective *c) {
    struct text ranks = {0}, size = {0};
    const struct fact *first, *other;
    if (!differ(kept, c, &first, &other))
        return; // what differed was taken back
    const char *what = difference(first, other);
    struct finding f = finding(FINDING_mismatch_collective, 0, 0);
    f.hint = what == different_captures  ? HINT_captured_by_some
             : what == different_offsets ? HINT_other_offset
             : what == different_configs ? HINT_other_config
                                         : HINT_OF_FINDING;
    set(&f, "differ", "%s", what);
    set(&f, "operation", "%llu", (unsigned long long)first->index);
    const char *comm = comm_words(j, first->comm, first->number);
    set(&f, "comm", "%s", comm);
    add_calls(j, &ranks, kept, c);
    add_size(&size, comm, kept->nranks, kept->world, kept->device);
    set_lines(&f, "ranks", &ranks);
    set_lines(&f, "size", &size);
    say(j, &f);
}

static void say_misfit(struct judge *j, const struct misfit *misfit) {
    struct text ranks = {0}, size = {0};
    const struct fact *send = &misfit->send, *recv = &misfit->recv;
    const struct kept *kept = map_get(&j->compare->comms, send->comm);
    bool by_rank = send->world == recv->world && send->rank != recv->rank;
    bool alike = send->type == recv->type && send->count == recv->count;
    struct finding f = finding(FINDING_mismatch_pair, 0, 0);
    f.hint = send->both && recv->both ? HINT_grouped_apart
             : alike                  ? HINT_captured_by_some
                                      : HINT_OF_FINDING;
    set(&f, "differ", "%s", difference(send, recv));
    const char *comm = comm_words(j, send->comm, send->number);
    set(&f, "comm", "%s", comm);
    add_call(j, &ranks, send, by_rank);
    add_call(j, &ranks, recv, by_rank);
    add_size(&size, comm, send->nranks, kept ? kept->world : NULL,
             kept ? kept->device : NULL);
    set_lines(&f, "ranks", &ranks);
    set_lines(&f, "size", &size);
    say(j, &f);
}

static void collective_free(void *gone) {
    struct collective *c = gone;
    free(c->facts);
    free(c->of);
    free(c);
}

static void forget_collective(struct judge *j, struct kept *kept, struct collective *c) {
    struct compare *compare = j->compare;
    for (size_t i = 0; i < compare->noverdue; i++)
        if (compare->overdue[i].collective == c)
            compare->overdue[i--] = compare->overdue[--compare->noverdue];
    map_put(&kept->collectives, c->seq, NULL);
    collective_free(c);
}

static void check_agreement(struct judge *j, struct kept *kept, struct collective *c) {
    struct compare *compare = j->compare;
    const struct fact *first, *other;
    if (!differ(kept, c, &first, &other)) {
        c->due = 0;
        if (c->heard == kept->nranks)
            forget_collective(j, kept, c);
        return;
    }
    if (c->heard == kept->nranks) {
        say_collective(j, kept, c);
        forget_collective(j, kept, c);
    } else if (c->due == 0) {
        c->due = now(j) + MOMENT;
        ROOM(compare->overdue, compare->noverdue, &compare->overdue_size);
        compare->overdue[compare->noverdue++] = (struct overdue){kept, c};
        hold(j);
    }
}

static void collective(struct judge *j, struct kept *kept, const struct fact *fact) {
    struct collective *c = map_get(&kept->collectives, fact->seq);
    if (!c && fact->what == FACT_BACK)
        return;
    if (!c) {
        c = must_alloc(sizeof *c);
        c->seq = fact->seq;
        c->of = must_alloc((size_t)kept->nranks * sizeof *c->of);
        for (int r = 0; r < kept->nranks; r++)
            c->of[r] = -1;
        map_put(&kept->collectives, fact->seq, c);
    }
    if (fact->what == FACT_BACK) {
        c->heard -= c->of[fact->rank] >= 0;
        c->of[fact->rank] = -1;
        check_agreement(j, kept, c);
        return;
    }
    int i = 0;
    while (i < c->nfacts &&
           (!agree(&c->facts[i], fact) || c->facts[i].site != fact->site ||
            c->facts[i].type != fact->type))
        i++;
    if (i == c->nfacts) {
        ROOM(c->facts, (size_t)c->nfacts, &c->size);
        c->facts[c->nfacts++] = *fact;
    }
    c->heard += c->of[fact->rank] < 0;
    c->of[fact->rank] = i;
    if (c->nfacts > 1 || c->heard == kept->nranks)
        check_agreement(j, kept, c);
}

static void misfits(struct judge *j, const struct fact *send, const struct fact *recv) {
    struct compare *compare = j->compare;
    ROOM(compare->misfits, compare->nmisfits, &compare->misfits_size);
    compare->misfits[compare->nmisfits++] =
        (struct misfit){*send, *recv, now(j) + MOMENT / 2};
    hold(j);
}

/* Both ranks have their first send and receive with each other in one group, or neither.
 */
static void grouped_alike(struct judge *j, struct kept *kept, const struct fact *fact) {
    int low = fact->rank < fact->root ? fact->rank : fact->root;
    uint64_t key =
        (uint64_t)(uint32_t)low << 32 | (uint32_t)(fact->rank + fact->root - low);
    struct fact *other = map_get(&kept->both, key);
    if (!other) {
        map_put(&kept->both, key, other = must_alloc(sizeof *other));
        *other = *fact;
    } else if (other->rank != fact->rank && other->both != fact->both &&
               fact->what != FACT_BACK) {
        misfits(j, other, fact);
    }
}

static void pair_free(void *pair) {
    free(((struct pair *)pair)->at);
    free(pair);
}

static void pair(struct judge *j, struct kept *kept, const struct fact *fact) {
    struct compare *compare = j->compare;
    if (fact->both)
        grouped_alike(j, kept, fact);
    bool send = fact->kind == JUDGE_SEND;
    uint64_t key = (uint64_t)(uint32_t)(send ? fact->rank : fact->root) << 32 |
                   (uint32_t)(send ? fact->root : fact->rank);
    struct pair *pair = map_get(&kept->pairs, key);
    if (!pair)
        map_put(&kept->pairs, key, pair = must_alloc(sizeof *pair));
    bool here = pair->first < pair->end && pair->at[pair->end - 1].kind == fact->kind;
    if (fact->what == FACT_BACK) {
        for (size_t i = 0; i < compare->nmisfits; i++) {
            struct misfit *m = &compare->misfits[i];
            const struct fact *mine = send ? &m->send : &m->recv;
            if (mine->comm == fact->comm && mine->rank == fact->rank &&
                mine->index == fact->index)
                compare->misfits[i--] = compare->misfits[--compare->nmisfits];
        }
        if (here && pair->at[pair->end - 1].seq == fact->seq)
            pair->end--;
    } else if (pair->first < pair->end && !here) {
        const struct fact *other = &pair->at[pair->first++];
        if (!agree(fact, other))
            misfits(j, send ? fact : other, send ? other : fact);
    } else {
        if (pair->first > 0 && pair->first == pair->end)
            pair->first = pair->end = 0;
        if (pair->end == pair->size && pair->first > pair->end / 2) {
            memmove(pair->at, pair->at + pair->first,
                    (pair->end - pair->first) * sizeof *pair->at);
            pair->end -= pair->first;
            pair->first = 0;
        }
        ROOM(pair->at, pair->end, &pair->size);
        pair->at[pair->end++] = *fact;
    }
    if (pair->first == pair->end) {
        map_put(&kept->pairs, key, NULL);
        pair_free(pair);
    }
}

static void kept_free(void *gone) {
    struct kept *kept = gone;
    map_clear(&kept->collectives, collective_free);
    map_clear(&kept->pairs, pair_free);
    map_clear(&kept->both, free);
    free(kept->world);
    free(kept->device);
    free(kept);
}

static void forget(struct judge *j, struct kept *kept) {
    struct compare *compare = j->compare;
    map_put(&compare->comms, kept->id, NULL);
    for (size_t i = compare->noverdue; i-- > 0;)
        if (compare->overdue[i].kept == kept) {
            say_collective(j, kept, compare->overdue[i].collective);
            compare->overdue[i] = compare->overdue[--compare->noverdue];
        }
    kept_free(kept);
}

static void hear(struct judge *j, const struct fact *fact, const char *host) {
    if (fact->nranks < 1 || fact->rank < 0 || fact->rank >= fact->nranks)
        return;
    rank_heard(j, fact->world, host);
    struct kept *kept = kept_of(j, fact);
    if (fact->rank >= kept->nranks)
        return; // its ranks do not agree on how many they are: rank 0 says so
    kept->world[fact->rank] = fact->world;
    kept->device[fact->rank] = fact->device;
    if (fact->what == FACT_ENDED) {
        if (++kept->nended == kept->nranks)
            forget(j, kept);
        return;
    }
    if (pairs(fact->kind))
        pair(j, kept, fact);
    else
        collective(j, kept, fact);
}

void compare_receive(struct judge *j, const void *data, size_t bytes) {
    struct batch head;
    if (bytes < sizeof head)
        return;
    memcpy(&head, data, sizeof head);
    for (size_t i = sizeof head; i + sizeof(struct fact) <= bytes;
         i += sizeof(struct fact)) {
        struct fact fact;
        memcpy(&fact, (const char *)data + i, sizeof fact);
        hear(j, &fact, head.host);
    }
}

void compare_look(struct judge *j) {
    struct compare *compare = j->compare;
    for (size_t i = 0; i < compare->noverdue; i++) {
        struct overdue one = compare->overdue[i];
        const double due = one.collective->due;
        if (due != 0 && !j->last && now(j) < due)
            continue;
        compare->overdue[i--] = compare->overdue[--compare->noverdue];
        if (due != 0)
            say_collective(j, one.kept, one.collective);
    }
    for (size_t i = 0; i < compare->nmisfits; i++)
        if (j->last || now(j) >= compare->misfits[i].due) {
            struct misfit misfit = compare->misfits[i];
            compare->misfits[i--] = compare->misfits[--compare->nmisfits];
            say_misfit(j, &misfit);
        }
}

void compare_free(struct compare *compare) {
    map_clear(&compare->comms, kept_free);
    free(compare->misfits);
    free(compare->overdue);
    free(compare);
}
