/*
 * process.c: a process's description, as a message brings it: what was numbers there are
 * pointers here.
 */
#include "stuck/stuck.h"

static bool fits(const struct state_head *head, size_t bytes) {
    size_t all = sizeof *head + (size_t)head->words_bytes;
    for (int part = 0; part < PARTS; part++)
        all += (size_t)head->n[part] * state_bytes[part];
    return head->words_bytes >= 2 && all == bytes;
}

/* What each operation comes after, and then the other way round. */
static struct op **link_ops(struct process *process, const int32_t *ints,
                            struct op **next) {
    for (int i = 0; i < process->nops; i++) {
        struct op *op = &process->ops[i];
        op->before = next;
        op->nbefore = op->told->nbefore;
        for (int b = 0; b < op->nbefore; b++) {
            struct op *before = &process->ops[ints[op->told->first_before + b]];
            *next++ = before;
            before->nafter++;
        }
    }
    for (int i = 0; i < process->nops; i++) {
        process->ops[i].after = next;
        next += process->ops[i].nafter;
        process->ops[i].nafter = 0;
    }
    for (int i = 0; i < process->nops; i++)
        for (int b = 0; b < process->ops[i].nbefore; b++) {
            struct op *before = process->ops[i].before[b];
            before->after[before->nafter++] = &process->ops[i];
        }
    return next;
}

static size_t count_links(const struct state_wait *waits, const struct state_op *ops,
                          const struct state_head *head) {
    size_t n = 0;
    for (int i = 0; i < head->n[OPS]; i++)
        n += 2 * (size_t)ops[i].nbefore;
    for (int w = 0; w < head->n[WAITS]; w++)
        n += waits[w].kind == WAIT_ORDER ? (size_t)waits[w].n : 0;
    return n;
}

bool process_read(struct process *process, int rank, const void *data, size_t bytes) {
    struct state_head head;
    if (bytes < sizeof head)
        return false;
    memcpy(&head, data, sizeof head);
    if (!fits(&head, bytes))
        return false;
    char *at = must_alloc(bytes);
    memcpy(at, data, bytes);
    *process = (struct process){.rank = rank, .data = at};
    process->head = (const struct state_head *)(const void *)at;
    at += sizeof head;
    const void *parts[PARTS];
    for (int part = 0; part < PARTS; part++) {
        parts[part] = at;
        at += (size_t)head.n[part] * state_bytes[part];
    }
    const struct state_wait *waits = parts[WAITS];
    const struct state_op *ops = parts[OPS];
    const struct recent_call *launches = parts[ITEMS];
    const int32_t *ints = parts[INTS];
    process->nwaits = head.n[WAITS];
    process->nops = head.n[OPS];
    process->ncomms = head.n[COMMS];
    process->npairs = head.n[PAIRS];
    process->comms = parts[COMMS];
    process->pairs = parts[PAIRS];
    process->failure = at;
    process->unlooked = at + strlen(at) + 1;
    process->waits = must_alloc(((size_t)process->nwaits + 1) * sizeof *process->waits);
    process->ops = must_alloc(((size_t)process->nops + 1) * sizeof *process->ops);
    process->links =
        must_alloc((count_links(waits, ops, &head) + 1) * sizeof(struct op *));
    for (int i = 0; i < process->nops; i++)
        process->ops[i] = (struct op){.told = &ops[i]};
    struct op **next = link_ops(process, ints, process->links);
    for (int w = 0; w < process->nwaits; w++) {
        struct wait *wait = &process->waits[w];
        *wait = (struct wait){&waits[w], (enum wait_kind)waits[w].kind, .n = waits[w].n};
        if (wait->kind == WAIT_LAUNCH)
            wait->launches = &launches[waits[w].first];
        else if (wait->kind == WAIT_MPI)
            wait->ranks = &ints[waits[w].first];
        if (wait->kind != WAIT_ORDER)
            continue;
        wait->ops = next;
        for (int i = 0; i < wait->n; i++)
            *next++ = &process->ops[ints[waits[w].first + i]];
    }
    return true;
}

void process_free(struct process *process) {
    free(process->data);
    free(process->waits);
    free(process->ops);
    free(process->links);
    free(process->awaited);
}

bool process_finished(const struct process *process) {
    for (int w = 0; w < process->nwaits; w++)
        if (process->waits[w].kind >= WAIT_EXIT)
            return true;
    return false;
}

bool process_in_mpi(const struct process *process) {
    for (int w = 0; w < process->nwaits; w++)
        if (process->waits[w].kind == WAIT_MPI)
            return true;
    return false;
}
