/*
 * meet.c has how ranks find one another and become a communicator.
 *
 * As in NCCL, the process that made the unique id is where they meet: each rank sends it
 * its particulars, and when all are there it answers all of them.
 * NCCL User Guide, "Creating a Communicator", "Communicator Creation and Management".
 */
#include "base/hosts.h"
#include "start/meet.h"

#include "data/exchange.h"
#include "cuda/device.h"
#include "base/helper.h"
#include "start/join.h"

#include <stdarg.h>
#include <strings.h>
#include <unistd.h>

static __thread char last_error[512];

/* As NCCL does with NCCL_DEBUG=WARN and above ("Environment Variables", "NCCL_DEBUG"). */
static void warn(void) {
    const char *level = getenv("NCCL_DEBUG");
    if (!level || (strcasecmp(level, "WARN") != 0 && strcasecmp(level, "INFO") != 0 &&
                   strcasecmp(level, "TRACE") != 0))
        return;
    fprintf(stderr, "%s:%d NCCL WARN %s\n", hosts_name(), (int)getpid(), last_error);
}

ncclResult_t nccl_error(ncclResult_t result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    warn();
    return result;
}

const char *nccl_last_error(void) {
    return last_error;
}

/* --- The unique id ---------------------------------------------------------------- */

struct unique {
    char magic[8];
    uint64_t number, maker; // maker: base_process()
    int32_t named;          // by NCCL_COMM_ID
    int32_t grows;          // for ncclCommGrow
    char rest[NCCL_UNIQUE_ID_BYTES - 32];
};
_Static_assert(sizeof(struct unique) == NCCL_UNIQUE_ID_BYTES, "as large as NCCL's");
// A zero byte soon: it is no string, nor is NCCL's, in which the tenth byte is 0.
static const char magic[8] = "standin";

struct issued { // an id that was made here, and that nobody has met with yet
    uint64_t number;
    struct issued *next;
};
static struct issued *issued;

static struct issued **issued_as(uint64_t number) {
    struct issued **at = &issued;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void forget_issued(uint64_t number) {
    struct issued **at = issued_as(number), *gone = *at;
    if (!gone)
        return;
    *at = gone->next;
    free(gone);
    helper_duty(-1, queue_look);
}

/* With NCCL_COMM_ID all processes meet at the first one, as often as they like, and each
 * makes the same id. */
static ncclResult_t meet_named(ncclUniqueId *id, const char *name) {
    struct unique unique = {.number = 0xcbf29ce484222325, .named = 1};
    char digit[2];
    if (sscanf(name, *name == '[' ? "[%*[^]]]:%1[0-9]" : "%*[^:]:%1[0-9]", digit) != 1)
        return nccl_error(
            ncclInvalidArgument,
            "Invalid NCCL_COMM_ID [%s], please use format: <ipv4>:<port> or "
            "[<ipv6>]:<port> or <hostname>:<port>",
            name);
    memcpy(unique.magic, magic, sizeof magic);
    for (; *name; name++)
        unique.number = (unique.number ^ (unsigned char)*name) * 0x100000001b3;
    unique.number |= 1;
    memcpy(id, &unique, sizeof unique);
    return ncclSuccess;
}

static void issue(uint64_t number) {
    struct issued *mine = base_alloc(sizeof *mine);
    *mine = (struct issued){number, issued};
    issued = mine;
    helper_duty(1, queue_look);
}

ncclResult_t meet_unique_id(ncclUniqueId *id, bool grows) {
    if (getenv("NCCL_COMM_ID"))
        return meet_named(id, getenv("NCCL_COMM_ID"));
    // The others may not come to any call before they have the id: nothing waits here.
    struct unique unique = {
        .number = base_random(), .maker = base_process(), .grows = grows};
    if (wire_alone())
        launch_begin(unique.maker);
    memcpy(unique.magic, magic, sizeof magic);
    memcpy(id, &unique, sizeof unique);
    issue(unique.number);
    return ncclSuccess;
}

void meet_seated(void) {
    if (job_rank == 0 && join_id() && !*issued_as(join_id()))
        issue(join_id());
}

/* --- The meeting ------------------------------------------------------------------ */

struct join {            // what a rank sends to the meeting
    uint64_t id, others; // of the first id, and of the others
    int32_t rank, nranks, named;
    char host[32], bus_id[32];
    double time; // modelled
};

struct joined {        // what it gets back; the processes of all ranks follow
    uint64_t id, comm; // the unique id's, the communicator's
    int32_t rank, nranks, result;
    char text[256];
    double time; // modelled: of the last one
};

struct meeting {
    uint64_t id, others;
    int nranks, here;
    struct join *joins; // by rank; nranks is 0 where nobody came yet
    int32_t *world;
    double time;
    struct meeting *next;
};
static struct meeting *meetings;

/* Two ranks on one GPU, which NCCL takes since 2.30, if it is told to. */
static ncclResult_t check_devices(const struct meeting *meeting, char *why, size_t size) {
    const struct join *all = meeting->joins;
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (shared && atoi(shared) != 0)
        return ncclSuccess;
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
    static uint64_t answers;
    // A name may be used again.
    uint64_t comm =
        meeting->joins[0].named ? meeting->id + (++answers << 1) : meeting->id;
    struct joined head = {.id = meeting->id,
                          .comm = comm,
                          .nranks = meeting->nranks,
                          .time = meeting->time};
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
                          .text = "the unique id has made a communicator already, or"
                                  " has come only in part"};
    wire_send(world, WIRE_JOINED, &head, sizeof head, NULL, 0);
}

/* Ranks that do not agree on how many they are meet apart, and so in vain; so does the
 * second of two that call themselves the same. */
static void on_join(int from, const char *data, size_t bytes) {
    (void)bytes;
    struct join join;
    memcpy(&join, data, sizeof join);
    if (!join.named && !*issued_as(join.id)) {
        refuse(&join, from);
        return;
    }
    struct meeting **at = &meetings;
    while (*at && ((*at)->id != join.id || (*at)->others != join.others ||
                   (*at)->nranks != join.nranks))
        at = &(*at)->next;
    struct meeting *meeting = *at;
    if (!meeting) {
        *at = meeting = base_alloc(sizeof *meeting);
        meeting->id = join.id;
        meeting->others = join.others;
        meeting->nranks = join.nranks;
        meeting->joins = base_alloc((size_t)join.nranks * sizeof *meeting->joins);
        meeting->world = base_alloc((size_t)join.nranks * sizeof *meeting->world);
    }
    if (meeting->joins[join.rank].nranks)
        return;
    meeting->joins[join.rank] = join;
    meeting->world[join.rank] = from;
    meeting->time = join.time > meeting->time ? join.time : meeting->time;
    if (++meeting->here < meeting->nranks)
        return;
    forget_issued(join.id);
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
        comm_fail(comm, (ncclResult_t)head.result, head.text);
        return;
    }
    int *world = base_alloc((size_t)head.nranks * sizeof *world);
    for (int i = 0; i < head.nranks; i++) {
        int32_t process;
        memcpy(&process, data + sizeof head + (size_t)i * sizeof process, sizeof process);
        world[i] = process;
    }
    comm_become(comm, head.comm, head.rank, head.nranks, world);
    free(world);
    comm->born = head.time;
    exchange_adopt(comm);
}

void meet_start(void) {
    wire_listen(WIRE_JOIN, on_join);
    wire_listen(WIRE_JOINED, on_joined);
}

static bool is_id(const struct unique *unique) {
    return memcmp(unique->magic, magic, sizeof magic) == 0;
}

/* Where the ranks with this id meet: at the process that made it. Those that have met by
 * it before MPI was started may be without that one. */
static int place_of(const struct unique *unique) {
    return unique->named || unique->number == join_id() ? 0 : job_find(unique->maker);
}

/* Those who have met without a launcher stay as many. */
static bool is_too_many(const struct unique *unique, int nranks) {
    return join_taken() && !unique->grows && nranks > join_nranks();
}

bool meet_announce(const ncclUniqueId *id, int rank, int nranks, bool called) {
    struct unique unique;
    memcpy(&unique, id, sizeof unique);
    if (!is_id(&unique) || nranks < 2 || rank < 0 || rank >= nranks)
        return true;
    if (!wire_alone())
        return !wire_is_open() ||
               (place_of(&unique) >= 0 && !is_too_many(&unique, nranks));
    if (unique.named) { // the first that comes listens
        unique.maker = unique.number;
        launch_begin(unique.maker);
    }
    const struct hail hail = {.id = unique.number,
                              .rank = rank,
                              .nranks = nranks,
                              .has_mpi = wire_is_open(),
                              .grows = unique.grows};
    // By NCCL_COMM_ID a rank may make several communicators at once.
    join_ask(unique.maker, hail, called && !unique.named);
    return true;
}

static ncclResult_t refused(const struct unique *unique) {
    const char *why = join_refused(unique->number);
    if (!why)
        join_say(why = join_taken()
                           ? "without a launcher, the first communicator must have a rank"
                             " in every process, and no later one has more ranks: begin"
                             " with mpirun"
                           : "the process that made it is not in this MPI job, or the"
                             " id has come only in part (sizeof(ncclUniqueId))");
    return nccl_error(join_misused(unique->number) ? ncclInvalidUsage : ncclSystemError,
                      "the ranks with this commId cannot meet: %s", why);
}

/* Nobody meets where the others were made. */
uint64_t meet_other_ids(const ncclUniqueId *ids, int n) {
    uint64_t all = 0;
    for (int i = 0; i < n; i++) {
        struct unique unique;
        memcpy(&unique, &ids[i], sizeof unique);
        all = (all ^ unique.number) * 0x100000001b3;
        forget_issued(unique.number);
    }
    return all;
}

ncclResult_t meet_join(struct ncclComm *comm, const ncclUniqueId *id, uint64_t others,
                       int rank, int nranks) {
    struct unique unique;
    wire_start();
    memcpy(&unique, id, sizeof unique);
    if (!is_id(&unique))
        return nccl_error(ncclInvalidArgument, "commId was not made by ncclGetUniqueId");
    int place = place_of(&unique);
    if (place < 0 || is_too_many(&unique, nranks) || join_refused(unique.number))
        return refused(&unique);
    if (!wire_reaches(-1))
        return nccl_error(ncclSystemError, "MPI, which connects the processes here, has"
                                           " ended");
    struct join join = {.id = unique.number,
                        .others = others,
                        .rank = rank,
                        .nranks = nranks,
                        .named = unique.named,
                        .time = clock_host()};
    snprintf(join.host, sizeof join.host, "%.31s", hosts_name());
    device_bus_id(comm->device, join.bus_id);
    struct joining *mine = base_alloc(sizeof *mine);
    *mine = (struct joining){comm, unique.number, rank, joining};
    joining = mine;
    helper_work(1, queue_look);
    wire_send(place, WIRE_JOIN, &join, sizeof join, NULL, 0);
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
    int *world = base_alloc((size_t)n * sizeof *world);
    for (int i = 0; i < n; i++)
        world[i] = job_rank;
    uint64_t id = 0xa11ull << 48 | (uint64_t)job_rank << 24 | ++made << 1;
    for (int i = 0; i < n; i++) {
        comm_become(comms[i], id, i, n, world);
        exchange_adopt(comms[i]);
    }
    free(world);
}

/* The id stays where it is: the call takes it. */
void meet_announce_growth(struct ncclComm *comm, int nranks) {
    ncclUniqueId id;
    if (!comm_is_one(comm) || comm->error != ncclSuccess || comm->state != READY ||
        !wire_alone())
        return;
    queue_look();
    if (exchange_told(comm, CALL_GROW_ID, &id, sizeof id, true))
        meet_announce(&id, comm->rank, nranks, true);
}
