/*
 * shared.c: memory that several processes use: uses that happen at the same time.
 *
 * CUDA puts operations of different processes in no order (CUDA Programming Guide,
 * "Interprocess Communication": the processes have to synchronise). They may do that in
 * ways that nobody sees here: by a message, a file, a signal. What is certain is time: if
 * each of two uses was queued before the other was known to be done, nobody can have
 * waited for either. All processes that use such memory are on one machine, which has one
 * clock.
 *
 * An owner gives such memory back when the others have closed it: "Calling cudaFree on an
 * exported memory region before calling cudaIpcCloseMemHandle in the importing context
 * will result in undefined behavior" (CUDA Runtime API, cudaIpcOpenMemHandle).
 *
 * Rank 0 is told of the uses, and compares.
 */
#include "memory/shared.h"

#include "base/base.h"
#include "base/post.h"
#include "base/self.h"
#include "judge.h"
#include "memory/allocations.h"
#include "memory/history.h"
#include "order/clocks.h"
#include "ranks/calls.h"
#include "ranks/unseen.h"
#include "say/finding.h"
#include "say/report.h"
#include "say/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 512, NAME = 40 };

struct shared_use { // as rank 0 is told of it
    struct shared_part part;
    uint64_t site;
    double begun, ended; // begun: INFINITY: it may wait for others
    int32_t gone, pad;   // the owner frees it, another closes it
    char call[NAME];
};

struct shared_batch {
    unsigned char message, pad[7];
    char host[JUDGE_HOST];
};

struct pending { // of this process
    struct shared_use use;
    int slot; // NONE: the host itself did it, and knows that it is done
    uint64_t seq;
    bool ended;
};

enum { NONE = -1 };

struct heard_use { // of another, on rank 0
    struct shared_use use;
    int world;
    char host[JUDGE_HOST];
};

struct memory { // on rank 0
    struct heard_use *at;
    size_t n, size;
};

struct shared {
    bool unseen; // an order may come about that is no event here
    struct pending *pending;
    size_t npending, pending_size;
    struct map memories; // struct memory, by number
};

static struct shared *shared_of(struct judge *j) {
    if (!j->shared)
        j->shared = must_alloc(sizeof *j->shared);
    return j->shared;
}

static struct pending *note(struct judge *j, const struct shared_part *part,
                            struct judge_at at) {
    struct shared *shared = shared_of(j);
    ROOM(shared->pending, shared->npending, &shared->pending_size);
    struct pending *p = &shared->pending[shared->npending++];
    *p = (struct pending){
        .use = {.part = *part, .site = at.site, .begun = now(j), .ended = now(j)},
        .slot = NONE};
    snprintf(p->use.call, sizeof p->use.call, "%s", at.call);
    return p;
}

static bool continues(const struct pending *p, const struct shared_part *part,
                      const struct use *use) {
    return !p->ended && p->slot == use->slot && p->use.site == use->at.site &&
           p->use.part.memory == part->memory && p->use.part.from == part->from &&
           p->use.part.to == part->to && p->use.part.write == part->write;
}

void shared_uses(struct judge *j, const struct shared_part *part, const struct use *use,
                 const struct clock *clock) {
    enum { LOOK_BACK = 8 };
    struct shared *shared = shared_of(j);
    if (j->nranks == 1 || shared->unseen)
        return;
    for (size_t i = shared->npending; i-- > 0 && i + LOOK_BACK >= shared->npending;)
        if (continues(&shared->pending[i], part, use)) {
            shared->pending[i].seq = use->seq;
            return;
        }
    struct pending *p = note(j, part, use->at);
    p->slot = use->slot;
    p->seq = use->seq;
    if (calls_before(j, use, clock))
        p->use.begun = INFINITY;
}

void shared_taken_back(struct judge *j, const struct use *use) {
    struct shared *shared = j->shared;
    for (size_t i = shared ? shared->npending : 0; i-- > 0;)
        if (shared->pending[i].slot == use->slot && shared->pending[i].seq == use->seq)
            shared->pending[i] = shared->pending[--shared->npending];
}

void shared_gone(struct judge *j, const struct shared_part *part, struct judge_at at) {
    if (j->nranks > 1 && !shared_of(j)->unseen)
        note(j, part, at)->use.gone = true;
}

void judge_order_unseen(struct judge *j) {
    shared_of(j)->unseen = true;
    j->shared->npending = 0;
}

void shared_ends(struct judge *j, const struct clock *clock) {
    struct shared *shared = j->shared;
    for (size_t i = 0; shared && i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        if (p->ended || (p->slot != NONE && !clock_covers(clock, p->slot, p->seq)))
            continue;
        p->ended = true;
        if (p->slot != NONE)
            p->use.ended = now(j);
    }
}

void shared_tell(struct judge *j, bool all) {
    struct shared *shared = j->shared;
    size_t left = 0, n = 0;
    if (!shared || shared->npending == 0)
        return;
    shared_ends(j, &j->known);
    struct shared_batch batch = {.message = MESSAGE_SHARED};
    memcpy(batch.host, j->host, sizeof batch.host);
    char *data = must_alloc(sizeof batch + shared->npending * sizeof(struct shared_use));
    memcpy(data, &batch, sizeof batch);
    for (size_t i = 0; i < shared->npending; i++) {
        struct pending *p = &shared->pending[i];
        if (!p->ended && !all) {
            shared->pending[left++] = *p;
            continue;
        }
        if (!p->ended)
            p->use.ended = now(j); // at the earliest
        memcpy(data + sizeof batch + n++ * sizeof p->use, &p->use, sizeof p->use);
    }
    shared->npending = left;
    if (n)
        post(j, 0, data, sizeof batch + n * sizeof(struct shared_use));
    free(data);
}

static void add_use(struct judge *j, struct text *text, const struct heard_use *heard) {
    const struct shared_use *use = &heard->use;
    char where[JUDGE_PLACE];
    text_add(text, "  rank %d on %s: %s at %s", heard->world, heard->host, use->call,
             place(j, use->site, where));
    if (!use->gone)
        text_add(text, " %s bytes %llu to %llu", use->part.write ? "writes" : "reads",
                 (unsigned long long)use->part.from,
                 (unsigned long long)use->part.to - 1);
    text_add(text, use->gone && !use->part.own ? " closes it\n" : "\n");
}

static void report_pair(struct judge *j, enum finding_name name,
                        const struct heard_use *a, const struct heard_use *b) {
    const struct heard_use *owner = a->use.part.own ? a : b->use.part.own ? b : NULL;
    struct text uses = {0};
    struct finding f = {.name = name, .site = a->use.site, .other = b->use.site};
    set(&f, "call", "%s", a->use.call);
    add_use(j, &uses, a);
    add_use(j, &uses, b);
    set_lines(&f, "uses", &uses);
    if (owner) {
        char where[JUDGE_PLACE];
        set(&f, "buffer", "the buffer: %llu bytes of rank %d's device memory, made at %s",
            (unsigned long long)owner->use.part.bytes, owner->world,
            place(j, owner->use.part.made, where));
    }
    say(j, &f);
}

/* The one frees, the other uses or closes: not memory that came to be there later. */
static bool freed_too_early(const struct shared_use *owner,
                            const struct shared_use *other) {
    return owner->part.own && owner->gone && other->part.opened < owner->begun &&
           owner->begun < other->ended;
}

static bool collide(const struct shared_use *a, const struct shared_use *b) {
    return !a->gone && !b->gone && (a->part.write || b->part.write) &&
           a->part.from < b->part.to && b->part.from < a->part.to &&
           a->begun < b->ended && b->begun < a->ended;
}

static void hear(struct judge *j, const struct heard_use *heard) {
    struct shared *shared = shared_of(j);
    struct memory *memory = map_get(&shared->memories, heard->use.part.memory);
    if (!memory)
        map_put(&shared->memories, heard->use.part.memory,
                memory = must_alloc(sizeof *memory));
    for (size_t i = 0; i < memory->n && !j->over; i++) {
        const struct heard_use *other = &memory->at[i];
        if (other->world == heard->world)
            continue;
        if (freed_too_early(&heard->use, &other->use))
            report_pair(j, FINDING_memory_open_elsewhere, heard, other);
        else if (freed_too_early(&other->use, &heard->use))
            report_pair(j, FINDING_memory_open_elsewhere, other, heard);
        else if (collide(&heard->use, &other->use))
            report_pair(j, FINDING_race_ranks, heard->use.part.write ? heard : other,
                        heard->use.part.write ? other : heard);
    }
    if (memory->n == KEPT) // the oldest goes
        memmove(memory->at, memory->at + 1, --memory->n * sizeof *memory->at);
    ROOM(memory->at, memory->n, &memory->size);
    memory->at[memory->n++] = *heard;
}

void shared_receive(struct judge *j, int from, const void *data, size_t bytes) {
    struct shared_batch batch;
    struct heard_use heard = {.world = from};
    const char *at = data;
    if (bytes < sizeof batch)
        return;
    memcpy(&batch, at, sizeof batch);
    snprintf(heard.host, sizeof heard.host, "%.*s", JUDGE_HOST - 1, batch.host);
    for (at += sizeof batch; at + sizeof heard.use <= (const char *)data + bytes;
         at += sizeof heard.use) {
        memcpy(&heard.use, at, sizeof heard.use);
        heard.use.call[NAME - 1] = '\0';
        hear(j, &heard);
    }
}

void shared_free(struct judge *j) {
    struct shared *shared = j->shared;
    for (size_t i = 0; shared && i < shared->memories.size; i++) {
        struct memory *memory = shared->memories.at[i].value;
        if (memory)
            free(memory->at);
        free(memory);
    }
    if (shared) {
        map_free(&shared->memories);
        free(shared->pending);
    }
    free(shared);
    j->shared = NULL;
}
