/*
 * check.c: what ranks announce and queue, against the rules.
 *
 * It compares what ranks have announced, and which operations use which memory. It knows
 * calls by their description (struct facts) and moves no data.
 *
 * The rules: NCCL User Guide, "Collective Operations" (every rank calls the same, in the
 * same order), "In-place Operations", "Group Calls"; CUDA Runtime API, "Stream
 * synchronization behavior".
 */
#include "internal.h"

/* --- The same call on every rank -------------------------------------------------- */

bool facts_agree(const struct facts *a, const struct facts *b) {
    if (point_to_point(a->kind))
        return a->count == b->count && a->type == b->type;
    if (a->kind != b->kind)
        return false;
    return a->kind == CALL_SPLIT || (a->count == b->count && a->type == b->type &&
                                     a->redop == b->redop && a->root == b->root);
}

static const char *difference(const struct facts *a, const struct facts *b) {
    return a->kind != b->kind     ? "call different operations"
           : a->type != b->type   ? "give different data types"
           : a->count != b->count ? "give different counts"
           : a->redop != b->redop ? "give different reductions"
                                  : "give different roots";
}

/* How people call a communicator here: by the order in which this process made it. */
static int comm_number(uint64_t id) {
    for (struct ncclComm *comm = communicators; comm; comm = comm->next)
        if (comm->id == id)
            return comm->number;
    return 0;
}

static void add_call(struct text *text, const struct facts *f) {
    char words[256], where[256];
    if (f->together)
        text_add(text, "  rank %d (device %d) on %s: ", f->rank, f->device, f->host);
    else
        text_add(text, "  rank %d on %s: ", f->world, f->host);
    text_add(text, "%s at %s\n", facts_text(words, f), offset_text(where, f->site));
}

void check_mismatch(const struct facts *all, const bool *have, int n) {
    struct text text = {0};
    int first = 0, other = -1, *same = must_alloc((size_t)n * sizeof *same);
    bool *told = must_alloc((size_t)n);
    while (!have[first])
        first++;
    for (int r = 0; r < n && other < 0; r++)
        if (have[r] && !facts_agree(&all[first], &all[r]))
            other = r;
    if (other < 0) { // they agreed with somebody else
        free(same);
        free(told);
        return;
    }
    text_add(&text, "mismatch: the ranks %s at operation %llu on communicator %d\n",
             difference(&all[first], &all[other]), (unsigned long long)all[first].index,
             comm_number(all[first].comm));
    for (int r = 0; r < n; r++) {
        if (!have[r] || told[r])
            continue;
        int nsame = 0;
        add_call(&text, &all[r]);
        for (int q = r + 1; q < n; q++)
            if (have[q] && !told[q] && facts_agree(&all[r], &all[q]) &&
                all[r].site == all[q].site) {
                told[q] = true;
                same[nsame++] = all[q].together ? q : all[q].world;
            }
        if (nsame) {
            text_add(&text, "  ");
            add_ranks(&text, same, nsame);
            text_add(&text, ": the same as rank %d\n",
                     all[r].together ? r : all[r].world);
        }
    }
    int nabsent = 0;
    for (int r = 0; r < n; r++)
        if (!have[r])
            same[nabsent++] = r;
    // Of an operation with a root, only the root hears from all.
    if (nabsent && all[first].root < 0) {
        text_add(&text, "  ");
        add_ranks(&text, same, nabsent);
        text_add(&text, " of the communicator: not there yet\n");
    }
    text_add(&text,
             "  Hint: every rank of a communicator makes the same calls in the same"
             " order.\n"
             "        The real NCCL hangs here, or ends with wrong data and exit code"
             " 0.\n");
    free(same);
    free(told);
    report(&text, false);
}

void check_pair(const struct facts *mine, const struct facts *theirs) {
    struct text text = {0};
    const struct facts *send = mine->kind == CALL_SEND ? mine : theirs;
    const struct facts *recv = send == mine ? theirs : mine;
    text_add(&text, "mismatch: a send and its receive %s on communicator %d\n",
             difference(&(struct facts){.count = send->count, .type = send->type},
                        &(struct facts){.count = recv->count, .type = recv->type}),
             comm_number(mine->comm));
    add_call(&text, send);
    add_call(&text, recv);
    text_add(&text,
             "  Hint: a receive takes as many elements of the same type as the send"
             " gives.\n"
             "        The real NCCL hangs here, or leaves part of the buffer as it"
             " was.\n");
    report(&text, false);
}

/* --- Buffers ---------------------------------------------------------------------- */

bool check_range(const char *name, void *site, const void *start, size_t bytes) {
    struct memory *memory = memory_find(start);
    if (!memory || (const char *)start + bytes <= memory->user + memory->bytes)
        return false;
    if (library.check != CHECK_OFF) {
        char where[256], made[256];
        struct text text = {0};
        text_add(
            &text,
            "memory: %s runs past the end of its buffer\n"
            "  rank %d on %s: %s at %s, %zu bytes from byte %zu of a buffer of %zu"
            " bytes\n"
            "  the buffer: %s memory made at %s\n"
            "  Hint: cudaMalloc and cudaMemcpy count bytes, NCCL counts elements.\n"
            "        A real GPU overwrites what lies behind, or stops with an illegal"
            " memory access.\n",
            name, library.world, library.host, name, site_text(where, site), bytes,
            (size_t)((const char *)start - memory->user), memory->bytes,
            memory_kind_name(memory->kind), site_text(made, memory->site));
        report(&text, true);
    }
    return true;
}

bool check_nccl_buffer(struct call *call, const char *which, const void *start,
                       size_t bytes) {
    char words[256], where[256];
    facts_text(words, &call->facts);
    if (memory_find(start))
        return check_range(words, call->site, start, bytes);
    struct text text = {0};
    const struct memory *gone = memory_freed(start);
    if (gone) {
        char made[256], freed[256];
        text_add(&text,
                 "memory: %s of %s was freed before\n"
                 "  rank %d on %s: %s at %s\n"
                 "  the buffer: %zu bytes of %s memory made at %s, freed at %s\n"
                 "  Hint: the real NCCL stops here with an illegal memory access, or uses"
                 " what lies there now.\n",
                 which, kind_name(call->facts.kind), library.world, library.host, words,
                 site_text(where, call->site), gone->bytes, memory_kind_name(gone->kind),
                 site_text(made, gone->site), site_text(freed, gone->end_site));
        report(&text, true);
        return true;
    }
    text_add(
        &text,
        "memory: %s of %s is not memory that a GPU can use\n"
        "  rank %d on %s: %s at %s\n"
        "  Hint: NCCL wants addresses from cudaMalloc (or ncclMemAlloc, cudaMallocHost,"
        " cudaMallocManaged);\n"
        "        the real NCCL stops here with an illegal memory access.\n",
        which, kind_name(call->facts.kind), library.world, library.host, words,
        site_text(where, call->site));
    report(&text, true);
    return true;
}

void check_host_buffers(const char *name, void *site, const void *const *buffers, int n) {
    lock_library();
    for (int i = 0; i < n && library.check != CHECK_OFF; i++) {
        const struct memory *memory = memory_find(buffers[i]);
        if (!memory || memory->kind != MEMORY_DEVICE)
            continue;
        char where[256], made[256];
        struct text text = {0};
        text_add(
            &text,
            "memory: a buffer of %s is device memory\n"
            "  rank %d on %s: %s at %s\n"
            "  the buffer: %zu bytes of device memory made at %s\n"
            "  Hint: copy with cudaMemcpy to memory of the host, or let NCCL send it."
            " Only an MPI that was\n"
            "        built for CUDA takes this address; with any other it is a"
            " segmentation fault.\n",
            name, library.world, library.host, name, site_text(where, site),
            memory->bytes, site_text(made, memory->site));
        report(&text, true);
        break;
    }
    unlock_library();
}

/* In place is what NCCL calls it; any other overlap makes garbage. */
bool check_overlap(struct call *call) {
    const struct facts *f = &call->facts;
    const char *send = call->sendbuff, *recv = call->recvbuff;
    size_t out = call_send_bytes(call), in = call_recv_bytes(call);
    if (send + out <= recv || recv + in <= send)
        return false;
    size_t block = f->count * type_size(f->type);
    const char *rule = "sendbuff == recvbuff";
    bool in_place = send == recv;
    switch (f->kind) {
    case CALL_ALL_GATHER:
        rule = "sendbuff == recvbuff + rank * sendcount";
        in_place = send == recv + (size_t)f->rank * block;
        break;
    case CALL_REDUCE_SCATTER:
        rule = "recvbuff == sendbuff + rank * recvcount";
        in_place = recv == send + (size_t)f->rank * block;
        break;
    case CALL_GATHER:
        rule = "sendbuff == recvbuff + root * count";
        in_place = send == recv + (size_t)f->root * block;
        break;
    case CALL_SCATTER:
        rule = "recvbuff == sendbuff + root * count";
        in_place = recv == send + (size_t)f->root * block;
        break;
    case CALL_ALL_TO_ALL:
        rule = "never";
        in_place = false;
        break;
    default: break;
    }
    if (in_place)
        return false;
    char words[256], where[256];
    struct text text = {0};
    text_add(&text,
             "mismatch: the buffers of %s overlap, and not as in place demands\n"
             "  rank %d on %s: %s at %s, rank %d of communicator %d\n"
             "  Hint: in place is, for this operation: %s.\n"
             "        The real NCCL overwrites data that it has not sent yet.\n",
             kind_name(f->kind), library.world, library.host, facts_text(words, f),
             site_text(where, call->site), f->rank, call->comm->number, rule);
    report(&text, true);
    return false;
}

/* NCCL User Guide, "Group Calls", "Management Of Multiple GPUs From One Thread": a call
 * may wait for the other ranks before it returns, and then the thread never gets to
 * theirs. */
void check_one_by_one(const struct call *call, uint64_t batch) {
    const struct ncclComm *comm = call->comm, *before = NULL;
    for (const struct ncclComm *other = communicators; other && !before;
         other = other->next)
        if (other != comm && other->clique == comm->clique && other->batch &&
            other->batch != batch && other->batch >> 32 == batch >> 32 &&
            other->collectives >= call->facts.seq)
            before = other;
    if (!before || library.check == CHECK_OFF)
        return;
    char words[256], where[256];
    struct text text = {0};
    text_add(
        &text,
        "deadlock: one thread makes the calls of several ranks one after the other\n"
        "  rank %d, GPU %d: %s at %s\n"
        "  rank %d, GPU %d: has made its call before, and may wait in it for this one\n"
        "  Hint: the calls for all GPUs of a thread go between ncclGroupStart and"
        " ncclGroupEnd.\n"
        "        The real NCCL may hang here.\n",
        comm->rank, comm->device, facts_text(words, &call->facts),
        site_text(where, call->site), before->rank, before->device);
    report(&text, true);
}

/* --- Who uses a buffer, and when -------------------------------------------------- */

static const char *does(bool write) {
    return write ? "writes" : "reads";
}

const char *range_text(char out[256], const struct op *op, const struct range *range) {
    if (range->call)
        return facts_text(out, &range->call->facts);
    snprintf(out, 256, "%s", op->name);
    return out;
}

const char *range_site(char out[256], const struct op *op, const struct range *range) {
    return site_text(out, range->call ? range->call->site : op->site);
}

static bool conflict(const struct range *a, const struct range *b) {
    return (a->write || b->write) && a->start < b->start + b->bytes &&
           b->start < a->start + a->bytes;
}

void check_group_race(struct op *op) {
    if (library.check == CHECK_OFF)
        return;
    for (int i = 0; i < op->nranges; i++)
        for (int j = 0; j < i; j++) {
            struct range *a = &op->ranges[j], *b = &op->ranges[i];
            if (a->call == b->call || !conflict(a, b))
                continue;
            char one[256], other[256], here[256], there[256], made[256];
            struct memory *memory = memory_find(a->start);
            struct text text = {0};
            text_add(
                &text,
                "race: two calls of one group use the same memory\n"
                "  rank %d on %s: %s at %s %s what\n"
                "  %s at %s %s\n"
                "  the buffer: %zu bytes of %s memory made at %s\n"
                "  Hint: the calls of a group happen at the same time, in no order.\n",
                library.world, library.host, range_text(one, op, a),
                range_site(here, op, a), does(a->write), range_text(other, op, b),
                range_site(there, op, b), does(b->write), memory->bytes,
                memory_kind_name(memory->kind), site_text(made, memory->site));
            report(&text, true);
            return;
        }
}

/* The newest unseen operation of another stream that `op`, queued on `stream` next, would
 * race with, and the ranges that they share; NULL: none. */
static struct op *racing(struct op *op, struct stream *stream, struct range **mine,
                         struct range **theirs) {
    struct op *found = NULL;
    for (int s = 0; s < nstreams && !found; s++) {
        if (!streams[s] || streams[s] == stream)
            continue;
        for (struct op *other = streams[s]->first; other; other = other->next)
            for (int i = 0; i < op->nranges * other->nranges; i++) {
                struct range *a = &op->ranges[i % op->nranges];
                struct range *b = &other->ranges[i / op->nranges];
                if (!conflict(a, b) || ordered_before(streams[s], other->seq, stream))
                    continue;
                found = other;
                *mine = a;
                *theirs = b;
            }
    }
    return found;
}

void check_race(struct op *op, struct stream *stream) {
    struct range *a, *b;
    struct op *other = library.check == CHECK_OFF ? NULL : racing(op, stream, &a, &b);
    if (!other)
        return;
    char mine[256], theirs[256], here[256], there[256], made[256];
    struct memory *memory = memory_find(a->start);
    bool host = stream->legacy;
    struct text text = {0};
    text_add(&text,
             "race: %s\n"
             "  rank %d on %s: %s at %s %s what\n"
             "  %s at %s %s, and nothing makes one wait for the other\n"
             "  the buffer: %zu bytes of %s memory made at %s\n",
             host ? "a buffer is used while a queued operation still uses it"
                  : "two streams use one buffer with no event between",
             library.world, library.host, range_text(mine, op, a),
             range_site(here, op, a), does(a->write), range_text(theirs, other, b),
             range_site(there, other, b), does(b->write), memory->bytes,
             memory_kind_name(memory->kind), site_text(made, memory->site));
    if (host)
        text_add(&text, "  Hint: call cudaStreamSynchronize first; the default"
                        " stream does not wait for a non-blocking one.\n");
    else if (other->stream->legacy && (other->kind == OP_COPY || other->kind == OP_SET))
        text_add(
            &text,
            "  Hint: %s can return before the data is there, and a non-blocking stream"
            " does not wait\n"
            "        for the default stream: give the copy the same stream"
            " (cudaMemcpyAsync, cudaMemsetAsync),\n"
            "        or call cudaStreamSynchronize(0) after it.\n",
            other->name);
    else
        text_add(&text, "  Hint: cudaEventRecord on the one stream,"
                        " cudaStreamWaitEvent on the other.\n");
    report(&text, true);
}

void check_host_access(const char *name, void *site, const void *start, size_t bytes,
                       const char *what) {
    if (library.check == CHECK_OFF)
        return;
    for (int s = 0; s < nstreams; s++)
        for (struct op *op = streams[s] ? streams[s]->first : NULL; op; op = op->next)
            for (int r = 0; r < op->nranges; r++) {
                const char *from = op->ranges[r].start;
                // Not the default stream's own copies: freeing waits for those anyway.
                if (streams[s]->legacy || from >= (const char *)start + bytes ||
                    (const char *)start >= from + op->ranges[r].bytes)
                    continue;
                char words[256], here[256], there[256];
                struct text text = {0};
                text_add(&text,
                         "race: %s %s a buffer that a queued operation still uses\n"
                         "  rank %d on %s: %s at %s\n"
                         "  queued: %s at %s",
                         name, what, library.world, library.host, name,
                         site_text(here, site), range_text(words, op, &op->ranges[r]),
                         range_site(there, op, &op->ranges[r]));
                if (op->calls)
                    text_add(&text, ", operation %llu on communicator %d",
                             (unsigned long long)op->calls->facts.index,
                             op->calls->comm->number);
                text_add(&text, "\n  Hint: call cudaStreamSynchronize first: until then"
                                " nothing is known of the operation.\n");
                report(&text, true);
                return;
            }
}

/* --- Ends ------------------------------------------------------------------------- */

void check_unfinished(const char *name, void *site, struct ncclComm *comm) {
    if (library.check == CHECK_OFF)
        return;
    struct text text = {0};
    int found = 0;
    char words[256], here[256];
    for (int s = 0; s < nstreams; s++)
        for (struct op *op = streams[s] ? streams[s]->first : NULL; op; op = op->next)
            for (struct call *call = op->calls; call; call = call->next) {
                if ((comm && call->comm != comm) || call->comm->aborted ||
                    call->facts.kind == CALL_SPLIT || ++found > 4)
                    continue;
                if (found == 1)
                    text_add(&text,
                             "missing: %s comes before queued operations are known to"
                             " be done\n"
                             "  rank %d on %s: %s%s%s\n",
                             name, library.world, library.host, name, site ? " at " : "",
                             site ? site_text(here, site) : "");
                text_add(&text, "  queued: %s at %s, operation %llu on communicator %d\n",
                         facts_text(words, &call->facts), site_text(here, call->site),
                         (unsigned long long)call->facts.index, call->comm->number);
            }
    if (found == 0)
        return;
    if (found > 4)
        text_add(&text, "  and %d more\n", found - 4);
    text_add(&text,
             "  Hint: call cudaStreamSynchronize before. The real NCCL may not even have"
             " started them.\n");
    report(&text, true);
}

void check_group_open(const char *name, void *site, struct stream *stream) {
    void *start;
    struct call *first;
    int ncalls, depth = group_open(stream, &start, &first, &ncalls);
    if (library.check == CHECK_OFF || depth == 0 || (stream && ncalls == 0))
        return;
    char words[256], here[256], there[256], begin[256];
    struct text text = {0};
    text_add(&text,
             "setup: a group was started and not ended\n"
             "  rank %d on %s: ncclGroupStart at %s, still open %s %s%s%s\n",
             library.world, library.host, site_text(begin, start), site ? "in" : "at",
             name, site ? " at " : "", site ? site_text(here, site) : "");
    if (first)
        text_add(&text, "  %d call%s wait%s in it, the first: %s at %s\n", ncalls,
                 ncalls == 1 ? "" : "s", ncalls == 1 ? "s" : "",
                 facts_text(words, &first->facts), site_text(there, first->site));
    text_add(&text,
             "  Hint: nothing of a group begins before ncclGroupEnd. The real NCCL goes"
             " on without it.\n");
    report(&text, true);
}

/* The one rule of this library's own. */
void check_too_late(const char *name, void *site) {
    char where[256];
    struct text text = {0};
    text_add(&text,
             "setup: %s comes after MPI_Finalize\n"
             "  rank %d on %s: %s at %s\n"
             "  Hint: here MPI carries what NCCL sends, so MPI_Finalize comes last. The"
             " real NCCL goes on\n"
             "        without MPI.\n",
             name, library.world, library.host, name, site_text(where, site));
    library.over = false;
    report(&text, false);
    abort(); // not reached
}

static void add_left(struct text *text, const char *what, size_t n, void *site) {
    char where[256];
    if (n > 0)
        text_add(text, "%s%zu %s%s (made at %s)", text->used ? ", " : "", n, what,
                 n == 1 ? "" : "s", site_text(where, site));
}

void check_left_behind(void) {
    if (library.check == CHECK_OFF)
        return;
    struct text mine = {0};
    size_t counts[3] = {0}, n;
    void *site = NULL, *sites[3] = {NULL};
    for (size_t i = 0; i < memory_count(); i++) {
        enum memory_kind kind = memory_at(i)->kind;
        counts[kind]++;
        sites[kind] = memory_at(i)->site;
    }
    add_left(&mine, "device buffer", counts[MEMORY_DEVICE], sites[MEMORY_DEVICE]);
    add_left(&mine, "pinned buffer", counts[MEMORY_PINNED], sites[MEMORY_PINNED]);
    add_left(&mine, "managed buffer", counts[MEMORY_MANAGED], sites[MEMORY_MANAGED]);
    n = 0;
    for (int s = 0; s < nstreams; s++)
        if (streams[s] && streams[s]->site && !streams[s]->destroyed) {
            n++;
            site = streams[s]->site;
        }
    add_left(&mine, "stream", n, site);
    n = events_left(&site);
    add_left(&mine, "event", n, site);
    n = 0;
    for (struct ncclComm *comm = communicators; comm; comm = comm->next)
        if (!comm->destroyed) {
            n++;
            site = comm->site;
        }
    add_left(&mine, "communicator", n, site);

    // One report for all ranks; those with the same to say share a line.
    enum { LINE = 1024 };
    char *line = must_alloc(LINE), *all = must_alloc((size_t)library.nworld * LINE);
    snprintf(line, LINE, "%s", mine.at ? mine.at : "");
    free(mine.at);
    if (library.mpi)
        PMPI_Gather(line, LINE, MPI_CHAR, all, LINE, MPI_CHAR, 0, library.control);
    else
        memcpy(all, line, LINE);
    struct text text = {0};
    for (int r = 0; library.world == 0 && r < library.nworld; r++) {
        char *at = all + (size_t)r * LINE;
        if (!*at)
            continue;
        if (text.used == 0)
            text_add(&text, "left behind: %s and has not released\n",
                     library.mpi ? "the program calls MPI_Finalize" : "the program ends");
        int *same = must_alloc((size_t)library.nworld * sizeof *same), n = 0;
        for (int q = r; q < library.nworld; q++)
            if (q == r || strcmp(at, all + (size_t)q * LINE) == 0) {
                same[n++] = q;
                if (q > r)
                    all[(size_t)q * LINE] = '\0';
            }
        text_add(&text, "  ");
        add_ranks(&text, same, n);
        free(same);
        text_add(&text, ": %s\n", at);
    }
    if (text.used) {
        text_add(&text, "  Hint: what was made is released in reverse order: cudaFree,"
                        " cudaStreamDestroy, ncclCommDestroy.\n");
        report_note(&text);
    }
    free(all);
    free(line);
}
