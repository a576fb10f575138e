/*
 * setup.c: how ranks find one another and become a communicator.
 *
 * As in NCCL, the process that made the unique id is where they meet: each rank sends it
 * its particulars, and when all are there it answers all of them.
 * NCCL User Guide, "Creating a Communicator", "Communicator Creation and Management".
 */
#include "internal.h"

#include <sys/random.h>
#include <unistd.h>

struct init *joining;

/* --- The unique id ---------------------------------------------------------------- */

struct unique {
    char magic[8];
    uint64_t number;
    int32_t creator; // world rank
    char rest[NCCL_UNIQUE_ID_BYTES - 20 - 4];
};
_Static_assert(sizeof(struct unique) == NCCL_UNIQUE_ID_BYTES, "as large as NCCL's");
static const char magic[8] = "nccl-cpu";

ncclResult_t setup_unique_id(ncclUniqueId *id) {
    struct unique unique = {.creator = library.world};
    memcpy(unique.magic, magic, sizeof magic);
    if (getrandom(&unique.number, sizeof unique.number, 0) != sizeof unique.number)
        unique.number = (uint64_t)(now() * 1e9) ^ (uint64_t)getpid() << 40;
    unique.number |= 1;
    memcpy(id, &unique, sizeof unique);
    return ncclSuccess;
}

bool setup_read_id(const ncclUniqueId *id, uint64_t *number, int *creator) {
    struct unique unique;
    memcpy(&unique, id, sizeof unique);
    *number = unique.number;
    *creator = unique.creator;
    return memcmp(unique.magic, magic, sizeof magic) == 0 && unique.creator >= 0 &&
           unique.creator < library.nworld;
}

/* --- The meeting ------------------------------------------------------------------ */

struct join { // what a rank sends to the meeting
    uint64_t id;
    int32_t rank, nranks, world, device;
    int64_t site;
    char host[32], bus_id[32], name[32];
};

struct joined { // what it gets back; the world ranks of all follow
    uint64_t id;
    int32_t rank, nranks, result;
    char text[256];
};

struct meeting {
    uint64_t id;
    int nranks, here;
    struct join *joins; // by rank; nranks is 0 where nobody came yet
    struct meeting *next;
};
static struct meeting *meetings;

static void describe(struct text *text, const struct join *join) {
    char where[256];
    text_add(text, "  rank %d on %s: %s(rank %d of %d ranks, GPU %d) at %s\n",
             join->world, join->host, join->name, join->rank, join->nranks, join->device,
             offset_text(where, join->site));
}

/* Two ranks on one GPU, or a process with some but not all of the ranks. */
static ncclResult_t judge_meeting(struct meeting *meeting, char *why, size_t size) {
    struct join *all = meeting->joins;
    int n = meeting->nranks, same_process = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            same_process += all[i].world == all[j].world;
            if (strcmp(all[i].host, all[j].host) != 0 ||
                strcmp(all[i].bus_id, all[j].bus_id) != 0)
                continue;
            snprintf(why, size,
                     "Duplicate GPU detected: rank %d and rank %d both on GPU %s of %s",
                     i, j, all[i].bus_id, all[i].host);
            if (library.check != CHECK_OFF) {
                struct text text = {0};
                text_add(&text, "setup: two ranks are bound to the same GPU, %s of %s\n",
                         all[i].bus_id, all[i].host);
                describe(&text, &all[i]);
                describe(&text, &all[j]);
                text_add(&text,
                         "  Hint: does every rank call cudaSetDevice(rank %% deviceCount)"
                         " before ncclCommInitRank,\n"
                         "        and are there as many GPUs as ranks? NCCL returns"
                         " ncclInvalidUsage.\n");
                report(&text, true);
            }
            return ncclInvalidUsage;
        }
    if (same_process == 0 || same_process == n * (n - 1) / 2)
        return ncclSuccess;
    snprintf(why, size,
             "The CPU build wants either one rank per process, or all ranks of the "
             "communicator in one process");
    return ncclInvalidUsage;
}

static void answer(struct meeting *meeting) {
    struct joined head = {.id = meeting->id, .nranks = meeting->nranks};
    head.result = judge_meeting(meeting, head.text, sizeof head.text);
    int32_t *world = must_alloc((size_t)meeting->nranks * sizeof *world);
    for (int i = 0; i < meeting->nranks; i++)
        world[i] = meeting->joins[i].world;
    for (int i = 0; i < meeting->nranks; i++) {
        head.rank = i;
        wire_send(world[i], WIRE_JOINED, &head, sizeof head, world,
                  (size_t)meeting->nranks * sizeof *world);
    }
    free(world);
}

static void meet(const struct join *join) {
    struct meeting **at = &meetings;
    while (*at && (*at)->id != join->id)
        at = &(*at)->next;
    struct meeting *meeting = *at;
    if (!meeting) {
        *at = meeting = must_alloc(sizeof *meeting);
        meeting->id = join->id;
        meeting->nranks = join->nranks;
        meeting->joins = must_alloc((size_t)join->nranks * sizeof *meeting->joins);
    }
    const struct join *other = NULL;
    if (join->nranks != meeting->nranks) {
        for (int i = 0; i < meeting->nranks && !other; i++)
            other = meeting->joins[i].nranks ? &meeting->joins[i] : NULL;
    } else if (meeting->joins[join->rank].nranks) {
        other = &meeting->joins[join->rank];
    }
    if (other) {
        struct text text = {0};
        if (join->nranks != meeting->nranks)
            text_add(&text, "setup: the ranks do not agree on how many they are\n");
        else
            text_add(&text, "setup: two processes call themselves rank %d\n", join->rank);
        describe(&text, other);
        describe(&text, join);
        text_add(&text,
                 "  Hint: every rank of a communicator gives the same unique id and"
                 " number of ranks,\n"
                 "        and a rank of its own. The real NCCL hangs here, or fails on"
                 " a closed connection.\n");
        report(&text, false);
    }
    meeting->joins[join->rank] = *join;
    if (++meeting->here < meeting->nranks)
        return;
    *at = meeting->next;
    answer(meeting);
    free(meeting->joins);
    free(meeting);
}

void setup_receive(int type, int from, const char *data, size_t bytes) {
    (void)from;
    (void)bytes;
    if (type == WIRE_JOIN) {
        struct join join;
        memcpy(&join, data, sizeof join);
        meet(&join);
        return;
    }
    struct joined head;
    memcpy(&head, data, sizeof head);
    for (struct init *init = joining; init; init = init->next_joining)
        if (init->id == head.id && init->rank == head.rank && !init->answered) {
            init->answered = true;
            init->result = head.result;
            if (head.result != ncclSuccess)
                nccl_error(head.result, "%s: %s", init->name, head.text);
            init->world = must_alloc((size_t)head.nranks * sizeof *init->world);
            for (int i = 0; i < head.nranks; i++) {
                int32_t world;
                memcpy(&world, data + sizeof head + (size_t)i * sizeof world,
                       sizeof world);
                init->world[i] = world;
            }
            return;
        }
}

/* --- ncclCommInitRank ------------------------------------------------------------- */

static struct ncclComm *become(struct init *init) {
    struct ncclComm *comm = comm_create(init->id, init->rank, init->nranks, init->world,
                                        init->device, init->name, init->site);
    bool one_process = init->nranks > 1 || !library.mpi;
    for (int i = 0; i < init->nranks; i++)
        one_process &= init->world[i] == init->world[0];
    if (one_process) {
        for (struct ncclComm *other = communicators; other; other = other->next)
            if (other != comm && other->id == comm->id && other->clique)
                comm->clique = other->clique;
        if (!comm->clique) {
            comm->clique = must_alloc(sizeof *comm->clique);
            comm->clique->nranks = init->nranks;
        }
        return comm;
    }
    // All of its ranks are here, in this function, or on the way to it. Open MPI
    // exchanges messages for this on the parent, which those on the way must not take for
    // theirs.
    MPI_Group all, group;
    PMPI_Comm_group(library.nursery, &all);
    PMPI_Group_incl(all, init->nranks, init->world, &group);
    PMPI_Comm_create_group(library.nursery, group, (int)(init->id & 0x3fff) + 16,
                           &comm->mpi);
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    PMPI_Comm_set_errhandler(comm->mpi, MPI_ERRORS_RETURN);
    wire_adopt(comm);
    return comm;
}

ncclResult_t setup_join(struct init *inits) {
    for (struct init *init = inits; init; init = init->next) {
        struct join join = {.id = init->id,
                            .rank = init->rank,
                            .nranks = init->nranks,
                            .world = library.world,
                            .device = init->device,
                            .site = site_offset(init->site)};
        memcpy(join.host, library.host, sizeof join.host - 1);
        snprintf(join.name, sizeof join.name, "%s", init->name);
        cudaDeviceGetPCIBusId(join.bus_id, sizeof join.bus_id, init->device);
        init->next_joining = joining;
        joining = init;
        wire_send(init->creator, WIRE_JOIN, &join, sizeof join, NULL, 0);
    }
    ncclResult_t result = ncclSuccess;
    for (struct init *init = inits; init;) {
        struct wait wait = {.init = init};
        wait_begin(&wait, WAIT_JOIN, init->name, init->site);
        while (!init->answered) {
            bool news = progress();
            if (init->answered)
                break;
            wait_tick(&wait, news);
        }
        wait_end(&wait);
        if (init->result == ncclSuccess)
            *init->out = become(init);
        else if (result == ncclSuccess)
            result = init->result;
        struct init **at = &joining, *next = init->next;
        while (*at != init)
            at = &(*at)->next_joining;
        *at = init->next_joining;
        free(init->world);
        free(init);
        init = next;
    }
    return result;
}

/* --- ncclCommSplit ---------------------------------------------------------------- */

static uint64_t mix(uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Ranks of one color form a communicator, in the order of their keys, then of their ranks
 * in the old one. */
static void split_up(struct split *split) {
    struct ncclComm *comm = split->comm;
    int(*all)[2] = must_alloc((size_t)comm->nranks * sizeof *all);
    memcpy(all, split->call->payloads, (size_t)comm->nranks * sizeof *all);
    int *members = must_alloc((size_t)comm->nranks * sizeof *members), n = 0, rank = 0;
    for (int r = 0; r < comm->nranks; r++) {
        if (all[r][0] != split->color)
            continue;
        int at = n++;
        for (; at > 0 && all[members[at - 1]][1] > all[r][1]; at--)
            members[at] = members[at - 1];
        members[at] = r;
    }
    int *world = must_alloc((size_t)comm->nranks * sizeof *world);
    for (int i = 0; i < n; i++) {
        world[i] = comm->world[members[i]];
        if (members[i] == comm->rank)
            rank = i;
    }
    bool wanted = split->color != NCCL_SPLIT_NOCOLOR;
    struct ncclComm *made = NULL;
    if (wanted) {
        uint64_t id =
            mix(comm->id ^ mix(split->call->facts.seq << 32 | (uint32_t)split->color));
        made =
            comm_create(id, rank, n, world, comm->device, "ncclCommSplit", split->site);
        *split->out = made;
    }
    if (comm->clique && made) {
        for (struct ncclComm *other = communicators; other; other = other->next)
            if (other != made && other->id == made->id && other->clique)
                made->clique = other->clique;
        if (!made->clique) {
            made->clique = must_alloc(sizeof *made->clique);
            made->clique->nranks = n;
        }
    } else if (!comm->clique) {
        MPI_Comm mpi;
        PMPI_Comm_split(comm->mpi, wanted ? split->color : MPI_UNDEFINED, rank, &mpi);
        if (made) {
            made->mpi = mpi;
            PMPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
            wire_adopt(made);
        }
    }
    free(all);
    free(members);
    free(world);
}

ncclResult_t setup_split(struct split *splits) {
    for (struct split *split = splits; split; split = split->next) {
        struct ncclComm *comm = split->comm;
        if (!comm->own)
            comm->own = stream_create(comm->device, false, NULL);
        split->call = call_create(comm, CALL_SPLIT, split->site);
        split->call->split[0] = split->color;
        split->call->split[1] = split->key;
        split->call->facts.root = -1;
        call_number(split->call);
        struct op *op = op_create(OP_NCCL, "ncclCommSplit", split->site);
        op->calls = split->call;
        op_enqueue(op, comm->own);
        split->seq = comm->own->queued;
    }
    for (struct split *split = splits; split;) {
        struct split *next = split->next;
        wait_until(split->comm->own, split->seq, "ncclCommSplit", split->site);
        split_up(split);
        // Only now may the call go.
        if (split->seq > seen[split->comm->own->slot])
            seen[split->comm->own->slot] = split->seq;
        free(split);
        split = next;
    }
    forget_seen();
    return ncclSuccess;
}
