/*
 * members.c: on rank 0: who joins a communicator, which ranks it has, who has left it.
 *
 * NCCL User Guide, "Creating a Communicator", "Destroying a communicator".
 */
#include "ranks/members.h"

#include "say/report.h"

/* The id by which it is known to all: a rank that joins one that grows has another. */
static uint64_t one_id(struct judge *j, uint64_t id) {
    const struct notice *made = map_get(&j->members->ids, id);
    return made && made->same ? made->same : id;
}

struct member_comm *members_comm(struct judge *j, uint64_t id) {
    return map_get(&j->members->comms, one_id(j, id));
}

const struct pair_count *members_pair(const struct member *one, int peer, int what) {
    for (size_t k = 0; k < one->npairs; k++)
        if (one->pairs[k].peer == peer && (int)one->pairs[k].what == what)
            return &one->pairs[k];
    return NULL;
}

bool members_given_up(struct judge *j, uint64_t id) {
    const struct member_comm *comm = members_comm(j, id);
    return comm && comm->given_up;
}

int members_id_maker(struct judge *j, uint64_t id) {
    const struct notice *made = map_get(&j->members->ids, id);
    return made ? made->rank : -1;
}

static struct member_comm *comm_with(struct judge *j, uint64_t id, int nranks) {
    struct members *members = j->members;
    struct member_comm *comm = map_get(&members->comms, id);
    if (comm)
        return comm;
    comm = must_alloc(sizeof *comm);
    comm->id = id;
    comm->nranks = nranks;
    comm->of = must_alloc((size_t)nranks * sizeof *comm->of);
    for (int r = 0; r < nranks; r++)
        comm->of[r].world = -1;
    map_put(&members->comms, id, comm);
    return comm;
}

static void release(void *gone) {
    struct member_comm *comm = gone;
    for (int r = 0; r < comm->nranks; r++)
        free(comm->of[r].pairs);
    free(comm->of);
    free(comm);
}

static void forget(struct members *members, struct member_comm *comm) {
    map_put(&members->comms, comm->id, NULL);
    map_put(&members->used, comm->id, members);
    free(map_get(&members->ids, comm->id));
    map_put(&members->ids, comm->id, NULL);
    release(comm);
}

static void describe(struct judge *j, struct text *text, int world,
                     const struct notice *join) {
    text_add(text, "  rank %d on %s: %s(rank %d of %d ranks, GPU %d) at %s\n", world,
             rank_host(j, world), join->call, join->rank, join->nranks, join->device,
             place(j, join->site));
}

/* Two joins that cannot both be: said a moment later, as one of them may fail at once. */
struct conflict {
    bool used;   // the unique id
    bool before; // `other` is known
    int from, other_from;
    struct notice join, other;
    double due;
};

static void say_conflict(struct judge *j, const struct conflict *c) {
    struct text ranks = {0};
    struct finding f = finding(c->used ? FINDING_setup_id_used_twice
                               : c->join.nranks != c->other.nranks ? FINDING_setup_nranks
                               : c->from != c->other_from ? FINDING_setup_same_rank
                                                          : FINDING_setup_rank_twice,
                               0, 0);
    set(&f, "comm_rank", "%d", c->join.rank);
    if (c->before)
        describe(j, &ranks, c->other_from, &c->other);
    describe(j, &ranks, c->from, &c->join);
    set_lines(&f, "ranks", &ranks);
    say(j, &f);
}

static void conflict(struct judge *j, bool used, int from, const struct notice *join,
                     const struct member *other) {
    struct members *members = j->members;
    struct conflict c = {used, other != NULL, from, -1, *join, {0}, now(j) + 0.1};
    if (other) {
        c.other_from = other->world;
        c.other = other->join;
    }
    ROOM(members->conflicts, members->nconflicts, &members->conflicts_size);
    members->conflicts[members->nconflicts++] = c;
}

void members_look(struct judge *j) {
    struct members *members = j->members;
    for (size_t i = 0; i < members->nconflicts; i++) {
        struct conflict c = members->conflicts[i];
        if (now(j) < c.due)
            continue;
        members->conflicts[i--] = members->conflicts[--members->nconflicts];
        say_conflict(j, &c);
    }
}

static void settle(struct members *members, int from, const struct notice *failed) {
    for (size_t i = 0; i < members->nconflicts; i++) {
        const struct conflict *c = &members->conflicts[i];
        if (c->join.id == failed->id &&
            ((c->from == from && c->join.rank == failed->rank) ||
             (c->before && c->other_from == from && c->other.rank == failed->rank)))
            members->conflicts[i--] = members->conflicts[--members->nconflicts];
    }
}

static bool several_hosts(struct judge *j) {
    const char *first = NULL;
    for (int r = 0; r < j->nranks; r++) {
        const char *host = map_get(&j->reports->hosts, (uint64_t)r);
        if (first && host && strcmp(first, host) != 0)
            return true;
        first = first ? first : host;
    }
    return false;
}

static void check_gpu(struct judge *j, int from, const struct notice *join,
                      const struct member_comm *comm) {
    const struct member *other = NULL;
    for (int r = 0; r < join->rank && !other && join->bus_id[0]; r++) {
        const struct member *member = &comm->of[r];
        if (member->joined && strcmp(member->join.bus_id, join->bus_id) == 0 &&
            strcmp(rank_host(j, member->world), join->host) == 0)
            other = member;
    }
    if (!other)
        return;
    struct text ranks = {0};
    bool one_each = join->nranks <= j->nranks; // a rank, not one for each thread
    bool together = other->world == from;
    struct finding f = finding(FINDING_setup_same_gpu, join->site,
                               mixed((uint64_t)from, (uint64_t)other->world));
    f.hint = join->thread > 1 && join->device == 0 && one_each ? HINT_same_gpu_thread
             : together                                        ? HINT_same_gpu_process
             : several_hosts(j)                                ? HINT_same_gpu_hosts
             : !j->options.kernels                             ? HINT_same_gpu_cpu
                                                               : HINT_OF_FINDING;
    set(&f, "gpu", "%s", join->bus_id);
    set(&f, "nranks", "%d", one_each || together ? join->nranks : j->nranks);
    set(&f, "gpu_host", "%s", join->host);
    describe(j, &ranks, other->world, &other->join);
    describe(j, &ranks, from, join);
    set_lines(&f, "ranks", &ranks);
    say(j, &f);
}

static void joins(struct judge *j, int from, const struct notice *join) {
    struct members *members = j->members;
    if (join->nranks < 1 || join->rank < 0 || join->rank >= join->nranks)
        return;
    if (map_get(&members->used, join->id)) {
        conflict(j, true, from, join, NULL);
        return;
    }
    struct member_comm *comm = comm_with(j, one_id(j, join->id), join->nranks);
    struct member *member = join->rank < comm->nranks ? &comm->of[join->rank] : NULL;
    const struct member *other = NULL;
    for (int r = 0; r < comm->nranks && !other; r++)
        if (comm->of[r].joined)
            other = &comm->of[r];
    if (comm->complete || (member && member->joined && member->made)) {
        conflict(j, true, from, join, member && member->joined ? member : other);
        return;
    }
    if (other && join->nranks != comm->nranks) {
        conflict(j, false, from, join, other);
        return;
    }
    if (!member)
        return;
    if (member->joined && !member->left) {
        conflict(j, false, from, join, member);
        return;
    }
    comm->njoined += !member->joined;
    comm->nended -= member->left;
    free(member->pairs);
    *member = (struct member){
        .world = from, .device = join->device, .joined = true, .join = *join};
    comm->complete = comm->njoined == comm->nranks;
    // When all are there, it is known on how many machines they are.
    for (int r = 0; r < comm->nranks && comm->complete; r++)
        check_gpu(j, comm->of[r].world, &comm->of[r].join, comm);
}

/* Two calls that do not go together, of two ranks or of one. */
static void say_two(struct judge *j, enum finding_name name, int from,
                    const struct notice *one, int other_from,
                    const struct notice *other) {
    struct text ranks = {0};
    struct finding f = finding(name, one->site, other->site);
    text_add(&ranks, "  rank %d on %s: %s at %s\n", other_from, rank_host(j, other_from),
             other->call, place(j, other->site));
    text_add(&ranks, "  rank %d on %s: %s at %s\n", from, rank_host(j, from), one->call,
             place(j, one->site));
    set_lines(&f, "ranks", &ranks);
    say(j, &f);
}

/* ncclCommDestroy waits for the ranks of its machine, if they have not been waited for.
 */
static void check_ends(struct judge *j, const struct member_comm *comm,
                       const struct member *one) {
    for (int r = 0; r < comm->nranks && !one->complete; r++) {
        const struct member *other = &comm->of[r];
        enum judge_end wanted = one->how == JUDGE_ABORTED     ? JUDGE_DESTROYED
                                : one->how == JUDGE_DESTROYED ? JUDGE_ABORTED
                                                              : JUDGE_FINALIZED;
        if (!other->left || other->how != wanted || wanted == JUDGE_FINALIZED ||
            other->complete ||
            strcmp(rank_host(j, one->world), rank_host(j, other->world)) != 0)
            continue;
        say_two(j, FINDING_deadlock_abort_and_destroy, one->world, &one->end,
                other->world, &other->end);
        return;
    }
}

/* Who waits for a rank may signal back more often than that one needs, for example that a
 * place in its queue is free. */
static void check_signals(struct judge *j, const struct member_comm *comm) {
    for (int r = 0; r < comm->nranks; r++)
        if (comm->of[r].how != JUDGE_DESTROYED)
            return;
    for (int r = 0; r < comm->nranks; r++)
        for (size_t k = 0; k < comm->of[r].npairs; k++) {
            const struct member *one = &comm->of[r];
            const struct pair_count *pair = &one->pairs[k];
            struct finding f = finding(FINDING_left_signals, pair->site, 0);
            if (pair->what != PAIR_SIGNALS || pair->peer >= comm->nranks ||
                members_pair(one, pair->peer, PAIR_WAITS) ||
                members_pair(&comm->of[pair->peer], r, PAIR_WAITS))
                continue;
            set(&f, "from", "rank %d on %s", one->world, rank_host(j, one->world));
            set(&f, "to", "%d: %llu", pair->peer, (unsigned long long)pair->n);
            set_place(j, &f, "last", pair->site);
            say(j, &f);
        }
}

static void put_id(struct map *ids, uint64_t id, const struct notice *made) {
    map_put(ids, id, memcpy(must_alloc(sizeof *made), made, sizeof *made));
}

/* "This function must be called by only one rank (the coordinator) before each grow
 * operation" (NCCL User Guide, ncclCommGetUniqueId). */
static void id_made(struct judge *j, int from, struct notice *made,
                    struct member_comm *comm) {
    struct map *ids = &j->members->ids;
    const struct notice *other = map_get(ids, made->same);
    if (map_get(ids, made->id))
        return;
    made->rank = from;
    put_id(ids, made->id, made);
    if (!made->same)
        return;
    if (!other)
        put_id(ids, made->same, made);
    else if (other->rank != from)
        say_two(j, FINDING_setup_grow_ids, from, made, other->rank, other);
    if (comm) { // some were quicker
        map_put(&j->members->comms, made->id, NULL);
        for (int r = 0; r < comm->nranks; r++)
            if (comm->of[r].joined)
                joins(j, comm->of[r].world, &comm->of[r].join);
        release(comm);
    }
}

static void hear(struct judge *j, int from, const struct notice *received,
                 const struct pair_count *left, size_t n) {
    struct members *members = j->members;
    struct notice notice = *received;
    notice.host[JUDGE_HOST - 1] = notice.call[CALL_NAME - 1] = '\0';
    notice.bus_id[sizeof notice.bus_id - 1] = '\0';
    members->changed = now(j);
    rank_heard(j, from, notice.host);
    struct member_comm *comm = members_comm(j, notice.id);
    struct member *member = comm && notice.rank >= 0 && notice.rank < comm->nranks
                                ? &comm->of[notice.rank]
                                : NULL;
    switch ((enum notice_what)notice.what) {
    case NOTICE_JOINS: joins(j, from, &notice); return;
    case NOTICE_FAILED:
        settle(members, from, &notice);
        if (member && member->joined && member->world == from) {
            *member = (struct member){.world = -1};
            comm->njoined--;
            comm->complete = false;
        }
        return;
    case NOTICE_MADE:
        if (!comm && notice.nranks > 0)
            comm = comm_with(j, notice.id, notice.nranks);
        if (!comm || notice.rank < 0 || notice.rank >= comm->nranks)
            return;
        member = &comm->of[notice.rank];
        member->world = from;
        member->device = notice.device;
        member->made = true;
        return;
    case NOTICE_ENDED:
        if (!member)
            return;
        comm->nended += !member->left;
        member->complete = member->left;
        member->left = true;
        member->how = (enum judge_end)notice.how;
        member->end = notice;
        if (notice.how == JUDGE_ABORTED || notice.how == JUDGE_REVOKED) {
            comm->given_up = true;
            member->gives_up = notice;
        }
        check_ends(j, comm, member);
        free(member->pairs);
        member->pairs = must_alloc(n * sizeof *left);
        member->npairs = n;
        if (n)
            memcpy(member->pairs, left, n * sizeof *left);
        if (comm->nended == comm->nranks && notice.how != JUDGE_FINALIZED &&
            notice.how != JUDGE_REVOKED) {
            for (int r = 0; r < comm->nranks; r++)
                if (comm->of[r].how == JUDGE_FINALIZED ||
                    comm->of[r].how == JUDGE_REVOKED)
                    return;
            check_signals(j, comm);
            forget(members, comm);
        }
        return;
    case NOTICE_ID: id_made(j, from, &notice, comm); return;
    case NOTICE_HOLD: members->hold = members->changed + 1; return;
    }
}

void members_receive(struct judge *j, int from, const void *data, size_t bytes) {
    struct notice notice;
    if (bytes < sizeof notice)
        return;
    memcpy(&notice, data, sizeof notice);
    size_t left = bytes - sizeof notice;
    struct pair_count *pairs = must_alloc(left);
    memcpy(pairs, (const char *)data + sizeof notice, left);
    hear(j, from, &notice, pairs, left / sizeof *pairs);
    free(pairs);
}

void members_free(struct members *members) {
    map_clear(&members->comms, release);
    map_free(&members->used);
    free(members->conflicts);
    map_clear(&members->ids, free);
    free(members);
}
