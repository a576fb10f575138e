/*
 * words.c: calls and communicators in words.
 */
#include "say/words.h"

#include "say/finding.h"
#include "say/report.h"

#include <stdio.h>

const char *const judge_kind_names[] = {"ncclBroadcast",     "ncclAllReduce",
                                        "ncclReduce",        "ncclAllGather",
                                        "ncclReduceScatter", "ncclAlltoAll",
                                        "ncclGather",        "ncclScatter",
                                        "ncclCommSplit",     "ncclCommWindowRegister",
                                        "ncclCommSuspend",   "ncclCommResume",
                                        "ncclSend",          "ncclRecv"};
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

bool part_needs(int kind, int root, int rank, int source) {
    switch (kind) {
    case JUDGE_ALL_REDUCE:
    case JUDGE_ALL_GATHER:
    case JUDGE_REDUCE_SCATTER:
    case JUDGE_ALL_TO_ALL: return rank != source;
    case JUDGE_RECV:
    case JUDGE_BROADCAST:
    case JUDGE_SCATTER: return rank != source && root == source;
    case JUDGE_REDUCE:
    case JUDGE_GATHER: return rank != source && root == rank;
    default: return false;
    }
}

static const char *type_name(int type) {
    int n = sizeof judge_type_names / sizeof *judge_type_names;
    return type >= 0 && type < n ? judge_type_names[type] : "a type of its own";
}

static const char *redop_name(int redop) {
    int n = sizeof judge_redop_names / sizeof *judge_redop_names;
    return redop >= 0 && redop < n ? judge_redop_names[redop] : "a PreMulSum";
}

const char *fact_words(char out[JUDGE_PLACE], const struct fact *f) {
    const char *name = judge_kind_names[f->kind], *type = type_name(f->type);
    unsigned long long count = f->count;
    switch (f->kind) {
    case JUDGE_BROADCAST:
    case JUDGE_GATHER:
    case JUDGE_SCATTER:
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s, root %d)", name, count, type,
                 f->root);
        break;
    case JUDGE_ALL_REDUCE:
    case JUDGE_REDUCE_SCATTER:
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s, %s)", name, count, type,
                 redop_name(f->redop));
        break;
    case JUDGE_REDUCE:
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s, %s, root %d)", name, count, type,
                 redop_name(f->redop), f->root);
        break;
    case JUDGE_SUSPEND:
    case JUDGE_RESUME:
    case JUDGE_SPLIT: snprintf(out, JUDGE_PLACE, "%s", name); break;
    case JUDGE_REGISTER: snprintf(out, JUDGE_PLACE, "%s(%llu bytes)", name, count); break;
    case JUDGE_SEND:
    case JUDGE_RECV:
        snprintf(out, JUDGE_PLACE, "%s(count %llu, %s, %s rank %d)", name, count, type,
                 f->kind == JUDGE_SEND ? "to" : "from", f->root);
        break;
    default: snprintf(out, JUDGE_PLACE, "%s(count %llu, %s)", name, count, type);
    }
    return out;
}

const char *call_words(char out[JUDGE_PLACE], const struct judge_call *call) {
    struct fact fact = {.kind = call->kind,
                        .type = call->type,
                        .redop = call->redop,
                        .root = call->root,
                        .count = call->count};
    return fact_words(out, &fact);
}

void set_call(struct judge *j, struct finding *f, const struct judge_call *call) {
    char words[JUDGE_PLACE];
    set(f, "call", "%s", call->at.call);
    set_words_at(j, f, "here", call_words(words, call), call->at.site);
}

const char *fact_site(struct judge *j, char out[JUDGE_PLACE], const struct fact *fact) {
    return place(j, fact->site, out);
}

bool same_process(const int *world, int nranks) {
    for (int r = 1; r < nranks; r++)
        for (int q = 0; q < r; q++)
            if (world[r] >= 0 && world[r] == world[q])
                return true;
    return false;
}

void add_size(struct text *text, int number, int nranks, const int *world,
              const int *device) {
    enum { MANY = 32 };
    text_add(text, "  communicator %d", number);
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
