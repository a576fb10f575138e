/*
 * meet.c has how ranks find one another and become a communicator.
 *
 * As in NCCL, the process that made the unique id is where they meet: each rank sends it
 * its particulars, and when all are there it answers all of them.
 * NCCL User Guide, "Creating a Communicator", "Communicator Creation and Management".
 */
#include "hosts.h"
#include "meet.h"

#include "carry.h"
#include "device.h"
#include "helper.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static __thread char last_error[512];

ncclResult_t nccl_error(ncclResult_t result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return result;
}

const char *nccl_last_error(void) {
    return last_error;
}

/* --- The unique id ---------------------------------------------------------------- */

struct unique {
    char magic[8];
    uint64_t number, job; // job: 0 where it was not known yet
    int32_t creator;      // process
    char rest[NCCL_UNIQUE_ID_BYTES - 28 - 4];
};
_Static_assert(sizeof(struct unique) == NCCL_UNIQUE_ID_BYTES, "as large as NCCL's");
// A zero byte soon: it is no string, nor is NCCL's, in which the tenth byte is 0.
static const char magic[8] = "standin";

struct issued { // an id that was made here, and that nobody has met with yet
    uint64_t number;
    int refusals; // a socket: who of another job has the id says so; -1: none
    struct issued *next;
};
static struct issued *issued;

/* Processes that no launcher has started together cannot meet over MPI. One that has the
 * id all the same tells the one that made it, which would wait for it for ever. */
static socklen_t refusals_of(uint64_t number, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    // A zero byte first: a name that is no file, and goes when its socket does.
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                          "nccl-cpu-%016llx", (unsigned long long)number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int refusals_socket(void) {
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* For a few at a time: ids that nobody joins with must not use up the process's files. */
static int heard_at_once;

static int hear_refusals(uint64_t number) {
    enum { MOST = 16 };
    struct sockaddr_un address;
    if (heard_at_once == MOST)
        return -1;
    socklen_t length = refusals_of(number, &address);
    int heard = refusals_socket();
    if (heard >= 0 && bind(heard, (struct sockaddr *)&address, length) != 0) {
        close(heard);
        heard = -1;
    }
    heard_at_once += heard >= 0;
    return heard;
}

static void tell_refusal(uint64_t number) {
    struct sockaddr_un address;
    socklen_t length = refusals_of(number, &address);
    int tells = refusals_socket();
    if (tells < 0)
        return;
    sendto(tells, "", 1, 0, (struct sockaddr *)&address, length);
    close(tells);
}

static void issued_free(struct issued *gone) {
    if (gone->refusals >= 0) {
        close(gone->refusals);
        heard_at_once--;
    }
    free(gone);
}

static struct issued **issued_as(uint64_t number) {
    struct issued **at = &issued;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

ncclResult_t meet_unique_id(ncclUniqueId *id) {
    // The others may not come to any call before they have the id: nothing waits here.
    struct unique unique = {.job = wire_job()};
    if (wire_number(&unique.creator) && !wire_is_open())
        unique.job = 0;
    memcpy(unique.magic, magic, sizeof magic);
    if (getrandom(&unique.number, sizeof unique.number, 0) != sizeof unique.number)
        unique.number = (uint64_t)(now() * 1e9) ^ wire_job() << 20;
    unique.number |= 1;
    memcpy(id, &unique, sizeof unique);
    struct issued *mine = must_alloc(sizeof *mine);
    bool alone = !wire_is_open() || wire_nworld == 1;
    *mine =
        (struct issued){unique.number, alone ? hear_refusals(unique.number) : -1, issued};
    issued = mine;
    helper_duty(1, queue_look);
    return ncclSuccess;
}

/* --- The meeting ------------------------------------------------------------------ */

struct join { // what a rank sends to the meeting
    uint64_t id;
    int32_t rank, nranks;
    char host[32], bus_id[32];
    double time; // modelled
};

struct joined { // what it gets back; the processes of all ranks follow
    uint64_t id;
    int32_t rank, nranks, result;
    char text[256];
    double time; // modelled: of the last one
};

struct meeting {
    uint64_t id;
    int nranks, here;
    struct join *joins; // by rank; nranks is 0 where nobody came yet
    int32_t *world;
    double time;
    struct meeting *next;
};
static struct meeting *meetings;

/* Two ranks on one GPU. */
static ncclResult_t check_devices(const struct meeting *meeting, char *why, size_t size) {
    const struct join *all = meeting->joins;
    for (int i = 0; i < meeting->nranks; i++)
        for (int j = i + 1; j < meeting->nranks; j++)
            if (strcmp(all[i].host, all[j].host) == 0 &&
                strcmp(all[i].bus_id, all[j].bus_id) == 0) {
                snprintf(why, size,
                         "Duplicate GPU detected: rank %d and rank %d both on GPU %s of "
                         "%s",
                         i, j, all[i].bus_id, all[i].host);
                return ncclInvalidUsage;
            }
    return ncclSuccess;
}

static void answer(const struct meeting *meeting) {
    struct joined head = {
        .id = meeting->id, .nranks = meeting->nranks, .time = meeting->time};
    head.result = check_devices(meeting, head.text, sizeof head.text);
    for (int i = 0; i < meeting->nranks; i++) {
        head.rank = i;
        wire_send(meeting->world[i], WIRE_JOINED, &head, sizeof head, meeting->world,
                  (size_t)meeting->nranks * sizeof *meeting->world);
    }
}

/* An id is good for one communicator: its meeting is closed after that. */
static void refuse(const struct join *join, int world) {
    struct joined head = {.id = join->id,
                          .rank = join->rank,
                          .nranks = join->nranks,
                          .result = ncclRemoteError,
                          .text = "the unique id has made a communicator already"};
    wire_send(world, WIRE_JOINED, &head, sizeof head, NULL, 0);
}

/* Ranks that do not agree on how many they are meet apart, and so in vain; so does the
 * second of two that call themselves the same. */
static void on_join(int from, const char *data, size_t bytes) {
    (void)bytes;
    struct join join;
    memcpy(&join, data, sizeof join);
    if (!*issued_as(join.id)) {
        refuse(&join, from);
        return;
    }
    struct meeting **at = &meetings;
    while (*at && ((*at)->id != join.id || (*at)->nranks != join.nranks))
        at = &(*at)->next;
    struct meeting *meeting = *at;
    if (!meeting) {
        *at = meeting = must_alloc(sizeof *meeting);
        meeting->id = join.id;
        meeting->nranks = join.nranks;
        meeting->joins = must_alloc((size_t)join.nranks * sizeof *meeting->joins);
        meeting->world = must_alloc((size_t)join.nranks * sizeof *meeting->world);
    }
    if (meeting->joins[join.rank].nranks)
        return;
    meeting->joins[join.rank] = join;
    meeting->world[join.rank] = from;
    meeting->time = join.time > meeting->time ? join.time : meeting->time;
    if (++meeting->here < meeting->nranks)
        return;
    struct issued **mine = issued_as(join.id), *gone = *mine;
    *mine = gone->next;
    issued_free(gone);
    helper_duty(-1, queue_look);
    *at = meeting->next;
    answer(meeting);
    free(meeting->joins);
    free(meeting->world);
    free(meeting);
}

/* --- ncclCommInitRank ------------------------------------------------------------- */

struct joining { // this process's ranks that have not been answered
    struct ncclComm *comm;
    uint64_t id;
    int rank;
    struct joining *next;
};
static struct joining *joining;

static void no_longer_joining(struct joining **at) {
    struct joining *mine = *at;
    *at = mine->next;
    free(mine);
    helper_work(-1, queue_look);
}

static void on_joined(int from, const char *data, size_t bytes) {
    (void)from;
    (void)bytes;
    struct joined head;
    memcpy(&head, data, sizeof head);
    struct joining **at = &joining;
    while (*at && ((*at)->id != head.id || (*at)->rank != head.rank))
        at = &(*at)->next;
    if (!*at) // it was aborted
        return;
    struct ncclComm *comm = (*at)->comm;
    no_longer_joining(at);
    if (head.result != ncclSuccess) {
        comm->error = (ncclResult_t)head.result;
        snprintf(comm->why, sizeof comm->why, "%s", head.text);
        return;
    }
    int *world = must_alloc((size_t)head.nranks * sizeof *world);
    for (int i = 0; i < head.nranks; i++) {
        int32_t process;
        memcpy(&process, data + sizeof head + (size_t)i * sizeof process, sizeof process);
        world[i] = process;
    }
    comm_become(comm, head.id, head.rank, head.nranks, world);
    free(world);
    comm->born = head.time;
    carry_adopt(comm);
}

void meet_start(void) {
    wire_listen(WIRE_JOIN, on_join);
    wire_listen(WIRE_JOINED, on_joined);
}

static const char strangers[] =
    "NCCL connects the processes here that one mpirun or srun has started, no others";

static ncclResult_t refused(uint64_t number) {
    tell_refusal(number);
    // Few programs print more of this than "unhandled system error".
    fprintf(stderr, "CPU build: %s; begin with mpirun.\n", strangers);
    return nccl_error(ncclSystemError,
                      "commId was made by a process that MPI does not know of: %s",
                      strangers);
}

void meet_refusals(void) {
    char none;
    for (const struct issued *of = issued; of; of = of->next) {
        if (of->refusals < 0 || recv(of->refusals, &none, 1, 0) < 0)
            continue;
        for (struct joining **at = &joining; *at;) {
            struct ncclComm *comm = (*at)->comm;
            if ((*at)->id != of->number) {
                at = &(*at)->next;
                continue;
            }
            no_longer_joining(at);
            comm->error = ncclSystemError;
            snprintf(comm->why, sizeof comm->why,
                     "commId was given to a process that MPI does not know of: %s",
                     strangers);
        }
    }
}

ncclResult_t meet_join(struct ncclComm *comm, const ncclUniqueId *id, int rank,
                       int nranks) {
    struct unique unique;
    wire_start();
    memcpy(&unique, id, sizeof unique);
    if (memcmp(unique.magic, magic, sizeof magic) != 0 || unique.creator < 0)
        return nccl_error(ncclInvalidArgument, "commId was not made by ncclGetUniqueId");
    if ((unique.job != 0 && unique.job != wire_job()) || unique.creator >= wire_nworld)
        return refused(unique.number);
    if (!wire_reaches(-1))
        return nccl_error(ncclSystemError, "MPI, which connects the processes here, has"
                                           " ended");
    struct join join = {
        .id = unique.number, .rank = rank, .nranks = nranks, .time = clock_host()};
    snprintf(join.host, sizeof join.host, "%.31s", hosts_name());
    device_bus_id(comm->device, join.bus_id);
    struct joining *mine = must_alloc(sizeof *mine);
    *mine = (struct joining){comm, unique.number, rank, joining};
    joining = mine;
    helper_work(1, queue_look);
    wire_send(unique.creator, WIRE_JOIN, &join, sizeof join, NULL, 0);
    return ncclSuccess;
}

void meet_leave(struct ncclComm *comm) {
    for (struct joining **at = &joining; *at; at = &(*at)->next)
        if ((*at)->comm == comm) {
            no_longer_joining(at);
            return;
        }
}

/* --- ncclCommInitAll -------------------------------------------------------------- */

void meet_alone(struct ncclComm *const *comms, int n) {
    static uint64_t made;
    int *world = must_alloc((size_t)n * sizeof *world);
    for (int i = 0; i < n; i++)
        world[i] = wire_world;
    uint64_t id = 0xa11ull << 48 | (uint64_t)wire_world << 24 | ++made << 1;
    for (int i = 0; i < n; i++) {
        comm_become(comms[i], id, i, n, world);
        carry_adopt(comms[i]);
    }
    free(world);
}

/* --- ncclCommSplit ---------------------------------------------------------------- */

struct split_op {
    struct op op;
    struct call *call;
    struct ncclComm *made;
};

static uint64_t mix(uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Ranks of one color form a communicator, in the order of their keys, then of their ranks
 * in the old one. */
static void split_up(const struct call *call, struct ncclComm *made) {
    const struct ncclComm *comm = call->comm;
    int color = call->split[0], n = 0, rank = 0;
    int(*all)[2] = (int(*)[2])(void *)call->payloads;
    int *members = must_alloc((size_t)comm->nranks * sizeof *members);
    for (int r = 0; r < comm->nranks; r++) {
        if (all[r][0] != color)
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
    uint64_t id = mix(comm->id ^ mix(call->facts.seq << 32 | (uint32_t)color));
    comm_become(made, id, rank, n, world);
    carry_adopt(made);
    free(members);
    free(world);
}

static bool step_split(struct op *op) {
    struct split_op *split = (struct split_op *)op;
    struct call *call = split->call;
    call->facts.start = op->start;
    bool further = call_advance(call);
    op->done = call->state == CALL_DONE || call->comm->aborted;
    if (call->start > op->start)
        op->start = call->start;
    if (op->done && call->comm->aborted && split->made)
        split->made->error = ncclInvalidUsage;
    else if (op->done && split->made) {
        split->made->born = op->start;
        split_up(call, split->made);
    }
    return further || op->done;
}

static void drop_split(struct op *op) {
    struct split_op *split = (struct split_op *)op;
    split->call->comm->splitting--;
    call_release(split->call);
    if (split->made)
        comm_release(split->made);
}

void meet_split(struct ncclComm *comm, struct ncclComm *made, int color, int key) {
    struct split_op *split = (struct split_op *)op_create(sizeof *split, step_split);
    split->op.drop = drop_split;
    split->call = call_create(comm, CALL_SPLIT);
    split->call->split[0] = color;
    split->call->split[1] = key;
    call_number(split->call);
    split->made = made;
    if (made)
        comm_hold(made);
    comm->splitting++;
    op_enqueue(&split->op, comm->own);
}
