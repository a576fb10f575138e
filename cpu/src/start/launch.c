/*
 * launch.c has the side of the process whose unique id others have: it waits until all
 * ranks of a communicator have come, has mpirun start as many processes as they are in,
 * and gives each of theirs the seat of one of those.
 *
 * A thread does it, as in NCCL: the program may do what it likes in the meantime.
 */
#define _GNU_SOURCE
#include "start/join.h"

#include "data/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MPIRUN
#define MPIRUN "mpirun"
#endif

extern char **environ;

struct guest {  // a process with ranks of a communicator, or one that holds a seat
    int socket; // -1: it has been answered
    uint64_t id, process;
    int rank; // the first of its ranks; the seat's number in MPI's job
    int lost; // it is one of so many, and has an id that nobody has met by
    bool seat, has_mpi;
    struct guest *next;
};

struct party { // all those with one id
    uint64_t id;
    int nranks, came, seats; // seats: that are asked of mpirun
    bool *there;             // ranks
    bool late;               // some of them are in a job already
    bool said;               // why they cannot meet
    char wrong[JOIN_TEXT];   // that; whoever comes later is told, too
    bool misused;            // it is what they say
    bool grows;              // by ncclCommGrow
    int launcher;            // -1: none; ends when mpirun does
    double began;
    struct party *next;
};

static struct guest *guests;
static struct party *parties;
static uint64_t me;

static struct party *party_of(uint64_t id, int nranks) {
    struct party **at = &parties;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    if (!*at && nranks > 0) {
        *at = base_alloc(sizeof **at);
        **at = (struct party){.id = id, .nranks = nranks, .launcher = -1, .began = now()};
        (*at)->there = base_alloc((size_t)nranks * sizeof(bool));
    }
    return *at;
}

/* --- Answers ---------------------------------------------------------------------- */

static void tell(struct guest *guest, enum join_answer what, const char *text, int seat) {
    struct answer answer = {.what = what};
    snprintf(answer.text, sizeof answer.text, "%s", text);
    join_send(guest->socket, &answer, sizeof answer, seat);
    close(guest->socket);
    guest->socket = -1;
}

static void tell_all(const struct party *party, enum join_answer what, const char *text) {
    for (struct guest *guest = guests; guest; guest = guest->next)
        if (guest->id == party->id && guest->socket >= 0)
            tell(guest, what, text, -1);
}

static void turn_away(struct party *party) {
    bool any = false;
    for (struct guest *guest = guests; guest; guest = guest->next)
        any |= guest->id == party->id && guest->socket >= 0;
    if (any && !party->said)
        join_say(party->wrong);
    party->said |= any;
    tell_all(party, party->misused ? JOIN_MISUSED : JOIN_NONE, party->wrong);
}

/* They cannot meet: all are told, those who come later, too. */
__attribute__((format(printf, 2, 3))) static void refuse(struct party *party,
                                                         const char *why, ...) {
    va_list arguments;
    va_start(arguments, why);
    if (!party->wrong[0])
        vsnprintf(party->wrong, sizeof party->wrong, why, arguments);
    va_end(arguments);
    party->began = 0;
    turn_away(party);
}

/* A process that gets a seat, or has one. */
static bool has_seat(uint64_t process) {
    for (const struct guest *guest = guests; guest; guest = guest->next)
        if (guest->process == process && !guest->seat &&
            party_of(guest->id, 0)->seats > 0)
            return true;
    return false;
}

/* Processes of a job meet the others there. No other can come into it any more. */
static void tell_late(struct party *party) {
    if (party->seats > 0)
        return;
    for (struct guest *guest = guests; guest; guest = guest->next)
        if (guest->id == party->id && guest->socket >= 0 && has_seat(guest->process)) {
            party->late = true;
            tell(guest, JOIN_HAVE, "", -1);
        }
    if (party->late)
        refuse(party, "some of them have met by a different id before, and this process"
                      " was not among them: begin with mpirun");
}

/* --- mpirun ----------------------------------------------------------------------- */

/* What does not concern it: that it runs in a job itself, and of Slurm's. */
static bool is_hidden(const char *variable) {
    static const char *const begin[] = {"SLURM_", "OMPI_COMM_",   "PMIX_",
                                        "PMI_",   "OMPI_MCA_ess", "OMPI_MCA_orte_"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(variable, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static char **environment_for(const struct party *party) {
    static char holds[64];
    size_t n = 0;
    while (environ[n])
        n++;
    char **out = base_alloc((n + 4) * sizeof *out);
    n = 0;
    for (char **variable = environ; *variable; variable++)
        if (!is_hidden(*variable))
            out[n++] = *variable;
    snprintf(holds, sizeof holds, JOIN_HOLD "=%llx %llx", (unsigned long long)me,
             (unsigned long long)party->id);
    out[n++] = holds;
    if (geteuid() == 0) { // as the processes are that mpirun is to start
        out[n++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        out[n++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    return out;
}

/* Its parent ends at once, so the program, which may wait for children of its own, does
 * not get to know it. Between a fork and exec only system calls are allowed. */
static void launch(struct party *party) {
    static char program[4096], number[16];
    static char *const arguments[] = {
#ifdef OPEN_MPI
        MPIRUN, "--quiet", "--oversubscribe", "--bind-to", "none",
#else
        MPIRUN,
#endif
        "-np",  number,    program,           NULL};
    int ends[2];
    char **variables = environment_for(party);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    snprintf(number, sizeof number, "%d", party->seats);
    if (length <= 0 || pipe2(ends, O_CLOEXEC) != 0) {
        refuse(party, "mpirun, which is to connect them, cannot be started");
        return;
    }
    program[length] = '\0';
    pid_t between = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
    if (between == 0) {
        if (syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL) != 0)
            _exit(0);
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 0);
        dup2(nothing, 1);
        fcntl(ends[1], F_SETFD, 0);
        execvpe(arguments[0], arguments, variables);
        _exit(1);
    }
    if (between > 0)
        waitpid(between, NULL, __WALL);
    close(ends[1]);
    free(variables);
    party->launcher = ends[0];
}

/* --- All are there ---------------------------------------------------------------- */

static void complete(struct party *party) {
    int processes = 0, with_mpi = 0;
    for (struct guest *guest = guests; guest; guest = guest->next)
        if (guest->id == party->id && !guest->seat) {
            processes++;
            with_mpi += guest->has_mpi;
        }
    if (processes == 1) {
        tell_all(party, JOIN_ALONE, "");
    } else if (with_mpi > 0) {
        refuse(party, "the program calls MPI_Init: begin with mpirun");
    } else {
        party->seats = processes;
        launch(party);
        for (struct party *other = parties; other; other = other->next)
            tell_late(other);
    }
}

/* Seats are given in the order of ranks. */
static void seat(struct party *party, struct guest *held) {
    for (struct guest *guest = guests; guest; guest = guest->next) {
        int before = 0;
        for (struct guest *other = guests; other; other = other->next)
            before += other->id == party->id && !other->seat && other->rank < guest->rank;
        if (guest->id != party->id || guest->seat || before != held->rank)
            continue;
        if (guest->socket >= 0)
            tell(guest, JOIN_TAKE, "", held->socket);
        close(held->socket);
        held->socket = -1;
        break;
    }
}

/* Ranks that went to an id of an earlier run, and have ended, do not come to this one. */
static void look_for_lost(struct party *party) {
    for (const struct guest *guest = guests; guest && party->seats == 0;
         guest = guest->next)
        if (guest->lost == party->nranks && guest->socket < 0 &&
            !party->there[guest->rank])
            refuse(party, "rank %d has ended, with the unique id of an earlier run",
                   guest->rank);
}

static void has_come(struct guest *guest, const struct hail *hail) {
    if (hail->lost) {
        guest->lost = hail->nranks;
        guest->rank = hail->rank;
        return;
    }
    struct party *party = party_of(hail->id, hail->nranks);
    bool first = guest->id == 0;
    party->grows = hail->grows;
    if (first || hail->rank < guest->rank)
        guest->rank = hail->rank;
    guest->id = hail->id;
    guest->process = hail->process;
    guest->has_mpi = hail->has_mpi;
    char wrong[JOIN_TEXT] = "";
    if (hail->nranks != party->nranks)
        snprintf(wrong, sizeof wrong, "rank %d gives %d as nranks, and another one %d",
                 hail->rank, hail->nranks, party->nranks);
    else if (party->there[hail->rank])
        snprintf(wrong, sizeof wrong, "two %s call themselves rank %d of %d ranks",
                 hail->twice ? "threads" : "processes", hail->rank, hail->nranks);
    if (wrong[0] && party->seats > 0) { // the others are all there
        join_say(wrong);
        tell(guest, JOIN_MISUSED, wrong, -1);
        return;
    }
    if (wrong[0]) {
        party->misused = true;
        refuse(party, "%s", wrong);
    }
    tell_late(party);
    if (party->wrong[0]) {
        turn_away(party);
        return;
    }
    party->there[hail->rank] = true;
    look_for_lost(party);
    if (++party->came == party->nranks && party->seats == 0)
        complete(party);
}

/* The guest has something to say. */
static void hear(struct guest *guest) {
    struct hail hail;
    struct party *party = party_of(guest->id, 0);
    // What a seat has to say is its process's to hear.
    long got = recv(guest->socket, &hail, sizeof hail, MSG_PEEK | MSG_DONTWAIT);
    if (got == (long)sizeof hail && hail.seat) {
        guest->seat = true;
        guest->id = hail.id;
        guest->rank = hail.rank;
        if ((party = party_of(hail.id, 0)))
            seat(party, guest);
        return;
    }
    got = recv(guest->socket, &hail, sizeof hail, MSG_DONTWAIT);
    if (got == (long)sizeof hail) {
        has_come(guest, &hail);
        return;
    }
    close(guest->socket);
    guest->socket = -1;
    if (party && party->seats == 0)
        refuse(party, "rank %d ended before all ranks had come", guest->rank);
    for (party = parties; party && guest->lost; party = party->next)
        look_for_lost(party);
}

static void welcome(int listens) {
    struct guest *guest = base_alloc(sizeof *guest);
    *guest = (struct guest){.socket = accept4(listens, NULL, NULL, SOCK_CLOEXEC),
                            .next = guests};
    guests = guest;
}

/* --- The thread ------------------------------------------------------------------- */

static void say_who_is_missing(struct party *party) {
    enum { MOST = 10 };
    char ranks[16 * MOST] = "";
    int missing = 0;
    if (party->came == party->nranks || party->began == 0 ||
        now() < party->began + base_patience())
        return;
    party->began = 0;
    for (int rank = 0; rank < party->nranks; rank++)
        if (!party->there[rank] && missing++ < MOST) {
            size_t length = strlen(ranks);
            snprintf(ranks + length, sizeof ranks - length, " %d", rank);
        }
    fprintf(
        stderr,
        "CPU build: %d of %d ranks wait in %s; missing:%s%s\n"
        "  Has every rank been started? Each gives nranks = %d, %s\n",
        party->came, party->nranks, party->grows ? "ncclCommGrow" : "ncclCommInitRank",
        ranks, missing > MOST ? " …" : "", party->nranks,
        party->grows
            ? "and each new one a rank of its own and the unique id."
            : "a rank of its own, and the unique id that one of them has made for all.\n"
              "  A thread that makes several ranks calls ncclCommInitRank for all of them"
              " between ncclGroupStart and ncclGroupEnd.");
}

static bool somebody_waits(void) {
    for (const struct party *party = parties; party; party = party->next)
        if (party->came < party->nranks && party->began > 0)
            return true;
    return false;
}

static int count(void) {
    int n = 2;
    for (struct guest *guest = guests; guest; guest = guest->next)
        n++;
    for (struct party *party = parties; party; party = party->next)
        n++;
    return n;
}

static int family = -1; // a socket

static void all_descriptors(struct pollfd *next, int listens) {
    *next++ = (struct pollfd){.fd = listens, .events = POLLIN};
    *next++ = (struct pollfd){.fd = family, .events = POLLIN};
    for (struct guest *guest = guests; guest; guest = guest->next)
        *next++ = (struct pollfd){.fd = guest->socket, .events = POLLIN};
    for (struct party *party = parties; party; party = party->next)
        *next++ = (struct pollfd){.fd = party->launcher, .events = POLLIN};
}

static void *usher(void *socket) {
    int listens = (int)(intptr_t)socket;
    for (;;) {
        int n = count();
        struct pollfd all[n]; // not the heap's: a forked process would have lost it
        all_descriptors(all, listens);
        poll(all, (nfds_t)n, somebody_waits() ? 250 : -1);
        struct pollfd *next = all + 2;
        for (struct guest *guest = guests; guest; guest = guest->next, next++)
            if (guest->socket >= 0 && next->revents)
                hear(guest);
        for (struct party *party = parties; party && next < all + n;
             party = party->next, next++) {
            say_who_is_missing(party);
            if (next->fd < 0 || !next->revents)
                continue;
            close(party->launcher);
            party->launcher = -1;
            refuse(party, "mpirun, which is to connect them, could not be started, or"
                          " has ended");
        }
        if (all[0].revents)
            welcome(listens);
        if (all[1].revents)
            welcome(family);
    }
    return NULL;
}

/* What a process has that was forked off by one with guests. */
static void forget_all(void) {
    for (struct guest *guest; (guest = guests); free(guest))
        guests = guest->next;
    for (struct party *party; (party = parties); free(party)) {
        parties = party->next;
        free(party->there);
    }
}

void launch_begin(uint64_t maker) {
    static uint64_t begun;
    pthread_t thread;
    if (begun == maker)
        return;
    begun = me = maker;
    forget_all();
    int listens = join_listen(maker);
    close(family); // the parent's, after a fork
    family = join_family() ? join_listen(join_family()) : -1;
    if (listens >= 0 &&
        pthread_create(&thread, NULL, usher, (void *)(intptr_t)listens) == 0) {
        pthread_setname_np(thread, "nccl-cpu"); // not the program's own
        pthread_detach(thread);
    }
}
