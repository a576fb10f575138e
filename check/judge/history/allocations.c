/*
 * allocations.c: the memory that the judge knows: what lies where, who made it, what was
 * freed, what is left at the end.
 */
#include "history/allocations.h"

#include "ranks/comms.h"

static void allocation_free(struct allocation *a) {
    history_free(&a->history);
    free(a->fresh);
    free(a);
}

void uses_free(struct uses *uses) {
    for (size_t i = 0; i < uses->n; i++)
        allocation_free(uses->table[i]);
    numbers_clear(&uses->lent, free);
    free(uses->access);
    free(uses->table);
    free(uses);
}

const char *kind_name(enum judge_memory_kind kind) {
    return judge_on_device(kind)                                   ? "device"
           : kind == JUDGE_PINNED || kind == JUDGE_HOST_REGISTERED ? "pinned"
           : kind == JUDGE_MANAGED                                 ? "managed"
                                                                   : "another process's";
}

bool allocation_on_gpu(const struct allocation *a) {
    return judge_on_device(a->kind) || a->kind == JUDGE_PEER;
}

/* Of the first allocation that starts after `at`. */
size_t allocation_position(const struct uses *uses, uint64_t at) {
    size_t low = 0, high = uses->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (uses->table[middle]->start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct allocation *allocation_find(const struct uses *uses, uint64_t at) {
    size_t i = allocation_position(uses, at);
    return i > 0 && at < uses->table[i - 1]->end ? uses->table[i - 1] : NULL;
}

const struct freed *allocation_freed(const struct uses *uses, uint64_t at) {
    size_t n = uses->nfreed < REMEMBERED ? uses->nfreed : REMEMBERED;
    for (size_t i = 1; i <= n; i++) { // the newest first
        const struct freed *f = &uses->freed[(uses->nfreed - i) % REMEMBERED];
        if (at >= f->start && at < f->end)
            return f;
    }
    return NULL;
}

void allocation_take_out(struct uses *uses, size_t i) {
    allocation_free(uses->table[i]);
    memmove(uses->table + i, uses->table + i + 1,
            (--uses->n - i) * sizeof(struct allocation *));
}

struct allocation *uses_made(struct judge *j, const void *start, size_t bytes,
                             enum judge_memory_kind kind, int device,
                             struct judge_at at) {
    struct uses *uses = j->uses;
    uint64_t from = address_of(start), to = from + (bytes ? bytes : 1);
    // What lay there before is gone, in a way that nobody told.
    for (size_t i = allocation_position(uses, to - 1);
         i-- > 0 && uses->table[i]->start < to && uses->table[i]->end > from;)
        allocation_take_out(uses, i);
    for (size_t i = 0; i < REMEMBERED; i++)
        if (uses->freed[i].start < to && uses->freed[i].end > from)
            uses->freed[i].start = uses->freed[i].end = 0;
    struct allocation *a = must_alloc(sizeof *a);
    a->start = from;
    a->end = to;
    a->serial = ++uses->serial;
    a->kind = kind;
    a->device = device;
    a->made = at;
    ROOM(uses->table, uses->n, &uses->size);
    size_t i = allocation_position(uses, from);
    memmove(uses->table + i + 1, uses->table + i, (uses->n++ - i) * sizeof a);
    uses->table[i] = a;
    return a;
}

uint64_t uses_serial(struct judge *j, const void *at) {
    const struct allocation *a = allocation_find(j->uses, address_of(at));
    return a ? a->serial : 0;
}

bool judge_memory_find(struct judge *j, const void *at, struct judge_memory *out) {
    const struct allocation *a = allocation_find(j->uses, address_of(at));
    if (a)
        *out = (struct judge_memory){(const void *)(uintptr_t)a->start,
                                     (size_t)(a->end - a->start), a->kind, a->device,
                                     a->made};
    return a != NULL;
}

const void *judge_memory_on(struct judge *j, int device) {
    for (size_t i = 0; i < j->uses->n; i++) {
        const struct allocation *a = j->uses->table[i];
        if (a->device == device && (a->kind <= JUDGE_POOL || a->kind >= JUDGE_MANAGED))
            return (const void *)(uintptr_t)a->start;
    }
    return NULL;
}

void judge_memory_open(struct judge *j, const void *at) {
    struct allocation *a = allocation_find(j->uses, address_of(at));
    if (a)
        a->open = true;
}

bool judge_host_may_fault(struct judge *j, const void *at) {
    return allocation_find(j->uses, address_of(at)) ||
           allocation_freed(j->uses, address_of(at));
}

static const char *use_words(const struct use *use) {
    return use->is_call ? call_words(&use->call) : use->at.call;
}

void set_use(struct judge *j, struct finding *f, const char *field,
             const struct use *use) {
    set_words_at(j, f, field, use_words(use), use->at.site);
}

void set_queued(struct judge *j, struct finding *f, const struct use *use) {
    const struct comm_facts *comm = use->is_call ? calls_comm(j, use->call.comm) : NULL;
    if (comm)
        set(f, "queued", "%s at %s, operation %llu on communicator %s", use_words(use),
            place(j, use->at.site), (unsigned long long)use->index,
            comm_words(j, comm->id, comm->number));
    else
        set_use(j, f, "queued", use);
}

void set_allocation(struct judge *j, struct finding *f, const struct allocation *a) {
    set(f, "bytes", "%llu", (unsigned long long)(a->end - a->start));
    set(f, "kind", "%s", kind_name(a->kind));
    set(f, "maker", "%s", a->made.call);
    set_place(j, f, "made", a->made.site);
    set(f, "other_device", "%d", a->device);
}

void count_left(struct left *left, struct judge_at made) {
    if (made.call)
        *left = (struct left){left->n + 1, made.site};
}

void add_left(struct judge *j, struct text *text, const char *what, struct left left) {
    if (left.n > 0)
        text_add(text, "%s%zu %s%s (made at %s)", text->used ? ", " : "", left.n, what,
                 left.n == 1 ? "" : "s", place(j, left.site));
}

void uses_left(struct judge *j, struct text *text) {
    static const struct {
        const char *name;
        enum judge_memory_kind first, last;
    } groups[] = {{"device buffer", JUDGE_DEVICE, JUDGE_NCCL_MEMORY},
                  {"pinned buffer", JUDGE_PINNED, JUDGE_HOST_REGISTERED},
                  {"managed buffer", JUDGE_MANAGED, JUDGE_MANAGED},
                  {"opened IPC handle", JUDGE_PEER, JUDGE_PEER}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        struct left left = {0};
        for (size_t i = 0; i < j->uses->n; i++) {
            const struct allocation *a = j->uses->table[i];
            if (a->kind >= groups[g].first && a->kind <= groups[g].last && !a->of_graph)
                count_left(&left, a->made);
        }
        add_left(j, text, groups[g].name, left);
    }
}
