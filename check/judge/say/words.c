/*
 * words.c: calls and communicators in words.
 */
#include "say/words.h"

#include "base/messages.h"
#include "say/finding.h"

#include <stdio.h>

const char *const judge_kind_names[] = {"ncclBroadcast",     "ncclAllReduce",
                                        "ncclReduce",        "ncclAllGather",
                                        "ncclReduceScatter", "ncclAlltoAll",
                                        "ncclGather",        "ncclScatter",
                                        "ncclCommSplit",     "ncclCommWindowRegister",
                                        "ncclDevCommCreate", "ncclCommSuspend",
                                        "ncclCommResume",    "ncclSend",
                                        "ncclRecv"};
const char *const judge_type_names[] = {
    "ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
const char *const judge_redop_names[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin",
                                         "ncclAvg"};

bool pairs(int kind) {
    return kind == JUDGE_SEND || kind == JUDGE_RECV;
}

bool moves_nothing(int kind) {
    return kind >= JUDGE_SPLIT && kind <= JUDGE_RESUME;
}

const struct kind *kind_of(int kind) {
    static const struct kind kinds[] = {
        [JUDGE_BROADCAST] = {ROOTS_ONE, ONE_BLOCK, false},
        [JUDGE_ALL_REDUCE] = {ONE_BLOCK, ONE_BLOCK, true},
        [JUDGE_REDUCE] = {ONE_BLOCK, ROOTS_ONE, true},
        [JUDGE_ALL_GATHER] = {ONE_BLOCK, ALL_BLOCKS, false},
        [JUDGE_REDUCE_SCATTER] = {ALL_BLOCKS, ONE_BLOCK, true},
        [JUDGE_ALL_TO_ALL] = {ALL_BLOCKS, ALL_BLOCKS, false},
        [JUDGE_GATHER] = {ONE_BLOCK, ROOTS_ALL, false},
        [JUDGE_SCATTER] = {ROOTS_ALL, ONE_BLOCK, false},
        [JUDGE_SEND] = {ONE_BLOCK, NO_BLOCK, false},
        [JUDGE_RECV] = {NO_BLOCK, ONE_BLOCK, false}};
    return &kinds[kind];
}

bool part_needs(int kind, int root, int rank, int source) {
    enum blocks sends = kind_of(kind)->send, gets = kind_of(kind)->recv;
    bool all_send = sends == ONE_BLOCK || sends == ALL_BLOCKS;
    return rank != source && gets != NO_BLOCK && (all_send || root == source) &&
           (gets < ROOTS_ONE || root == rank);
}

static const char *type_name(int type) {
    int n = sizeof judge_type_names / sizeof *judge_type_names;
    return type >= 0 && type < n ? judge_type_names[type] : "a type of its own";
}

static const char *redop_name(int redop) {
    int n = sizeof judge_redop_names / sizeof *judge_redop_names;
    return redop >= 0 && redop < n ? judge_redop_names[redop] : "a PreMulSum";
}

const char *fact_words(const struct fact *f) {
    const char *name = judge_kind_names[f->kind], *type = type_name(f->type);
    const struct kind *kind = kind_of(f->kind);
    unsigned long long count = f->count;
    static __thread char ring[4][JUDGE_PLACE];
    static __thread unsigned next;
    char *out = ring[next++ % 4];
    if (f->kind == JUDGE_REGISTER) {
        snprintf(out, JUDGE_PLACE, "%s(%llu bytes)", name, count);
    } else if (moves_nothing(f->kind)) {
        snprintf(out, JUDGE_PLACE, "%s", name);
    } else if (pairs(f->kind)) {
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s, %s rank %d)", name, count, type,
                 f->kind == JUDGE_SEND ? "to" : "from", f->root);
    } else {
        char root[32] = "";
        if (kind->send >= ROOTS_ONE || kind->recv >= ROOTS_ONE)
            snprintf(root, sizeof root, ", root %d", f->root);
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s%s%s%s)", name, count, type,
                 kind->reduces ? ", " : "", kind->reduces ? redop_name(f->redop) : "",
                 root);
    }
    return out;
}

const char *call_words(const struct judge_call *call) {
    struct fact fact = {.kind = call->kind,
                        .type = call->type,
                        .redop = call->redop,
                        .root = call->root,
                        .count = call->count};
    return fact_words(&fact);
}

void set_call(struct judge *j, struct finding *f, const struct judge_call *call) {
    set(f, "call", "%s", call->at.call);
    set_words_at(j, f, "here", call_words(call), call->at.site);
}

/* To whoever may report something about a communicator: its id, its name. */
enum { NAME = 64 };
struct name {
    unsigned char message, pad[7];
    uint64_t id;
    char words[NAME];
};

void comm_name_receive(struct judge *j, const void *data, size_t bytes) {
    const struct name *name = data;
    if (bytes != sizeof *name || map_get(&j->comm_names, name->id))
        return;
    char *words = must_alloc(NAME);
    memcpy(words, name->words, NAME - 1);
    map_put(&j->comm_names, name->id, words);
}

void judge_comm_named(struct judge *j, uint64_t id, const char *words) {
    struct name name = {.message = MESSAGE_NAME, .id = id};
    snprintf(name.words, NAME, "%s", words);
    comm_name_receive(j, &name, sizeof name);
    for (int to = 0; to < j->nranks; to++)
        if (to != j->rank && (to == 0 || to == comm_keeper(j, id)))
            message_send(j, to, &name, sizeof name);
}

const char *comm_words(struct judge *j, uint64_t id, int number) {
    static __thread char ring[4][NAME + 16];
    static __thread unsigned next;
    const char *name = map_get(&j->comm_names, id);
    char *out = ring[next++ % 4];
    snprintf(out, sizeof ring[0], name ? "%d (%s)" : "%d", number, name);
    return out;
}

bool same_process(const int *world, int nranks) {
    for (int r = 1; r < nranks; r++)
        for (int q = 0; q < r; q++)
            if (world[r] >= 0 && world[r] == world[q])
                return true;
    return false;
}

void add_size(struct text *text, const char *comm, int nranks, const int *world,
              const int *device) {
    enum { MANY = 32 };
    text_add(text, "  communicator %s", comm);
    text_add(text, " has %d rank%s", nranks, nranks == 1 ? "" : "s");
    bool differ = false, alike = true, several = world && same_process(world, nranks);
    for (int r = 0; world && r < nranks; r++) {
        differ |= world[r] >= 0 && world[r] != r;
        alike &= world[r] == world[0];
    }
    bool first = true;
    for (int r = 0; differ && r < nranks && r < MANY; r++) {
        if (world[r] < 0)
            continue;
        if (several && alike)
            text_add(text, "%s rank %d is on device %d", first ? ":" : ",", r, device[r]);
        else if (several)
            text_add(text, "%s its rank %d is on device %d of rank %d", first ? ":" : ",",
                     r, device[r], world[r]);
        else
            text_add(text, "%s its rank %d is rank %d", first ? ":" : ",", r, world[r]);
        first = false;
    }
    text_add(text, "%s\n",
             !differ              ? ""
             : !several || !alike ? " of the job"
                                  : ", all in one process");
}
