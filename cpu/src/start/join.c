/*
 * join.c has the side of a process that wants to be in an MPI job, and of one that holds
 * a seat there for it.
 */
#define _GNU_SOURCE
#include "start/join.h"

#include "data/wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

/* --- Sockets ---------------------------------------------------------------------- */

/* What follows the making of a socket; -1 if that fails. */
static int or_closed(int made, bool well) {
    if (well || made < 0)
        return made;
    close(made);
    return -1;
}

/* A socket that `has` this name (bind) or talks to the one that has it (connect). */
static int named_socket(uint64_t number, int type,
                        int (*has)(int, const struct sockaddr *, socklen_t)) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    // A zero byte first: a name that is no file, and goes when its socket does.
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                     "nccl-cpu-%016llx", (unsigned long long)number);
    socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int made = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    return or_closed(made, has(made, (struct sockaddr *)&address, length) == 0);
}

int join_listen(uint64_t maker) {
    int made = named_socket(maker, SOCK_SEQPACKET, bind);
    return or_closed(made, listen(made, SOMAXCONN) == 0);
}

int join_connect(uint64_t maker) {
    return named_socket(maker, SOCK_SEQPACKET, connect);
}

uint64_t join_number(const char *name) {
    uint64_t number = 0xcbf29ce484222325;
    while (*name)
        number = (number ^ (unsigned char)*name++) * 0x100000001b3;
    return number;
}

uint64_t join_family(void) {
    enum { MORE = 64 };
    char name[4096] = "";
    const char *nranks = getenv("RANK") ? getenv("WORLD_SIZE") : NULL;
    ssize_t n = readlink("/proc/self/exe", name, sizeof name - MORE);
    if (!nranks || n <= 0)
        return 0;
    snprintf(name + n, MORE, " %s %d %d", nranks, (int)getsid(0), (int)getuid());
    return join_number(name);
}

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

bool join_send(int socket, const void *data, size_t bytes, int descriptor) {
    union control control = {0};
    struct iovec part = {(void *)(uintptr_t)data, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

long join_receive(int socket, void *data, size_t bytes, int *descriptor) {
    union control control;
    struct iovec part = {data, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    long got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *descriptor = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(head), sizeof *descriptor);
    return got;
}

/* --- Who holds a seat ------------------------------------------------------------- */

/* What launchers tell those whom they start. */
static bool of_launcher(const char *variable) {
    static const char *const begin[] = {"OMPI_", "PMIX_",  "PMI_", "ORTE_",
                                        "PRTE_", "HYDRA_", "MPI_", "MPIR_"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(variable, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static int first_set(const char *const *names) {
    for (; *names; names++)
        if (getenv(*names))
            return atoi(getenv(*names));
    return -1;
}

static int rank_in_job(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        NULL};
    return first_set(names);
}

void join_hold(void) {
    const char *whose = getenv(JOIN_HOLD);
    static char message[JOIN_ENVIRONMENT];
    struct hail hail = {.rank = rank_in_job(), .seat = true};
    unsigned long long maker, id;
    if (!whose)
        return;
    if (sscanf(whose, "%llx %llx", &maker, &id) != 2)
        _exit(1);
    int usher = join_connect(maker);
    hail.id = id;
    memcpy(message, &hail, sizeof hail);
    size_t bytes = sizeof hail;
    for (char **variable = environ; *variable; variable++) {
        size_t length = strlen(*variable) + 1;
        if (!of_launcher(*variable) || bytes + length > sizeof message)
            continue;
        memcpy(message + bytes, *variable, length);
        bytes += length;
    }
    // MPICH's processes talk to their launcher by a descriptor that they inherit.
    int inherited = getenv("PMI_FD") ? atoi(getenv("PMI_FD")) : -1;
    if (!join_send(usher, message, bytes, inherited))
        _exit(1);
    // One byte: its process has ended well.
    _exit(read(usher, message, 1) == 1 ? 0 : 1);
}

/* --- Who wants one ---------------------------------------------------------------- */

struct asked {
    uint64_t id;
    int usher; // a socket
    enum join_answer answer;
    char why[JOIN_TEXT];
    int nranks;
    const char **ranks; // of this process: the threads that said so first
    struct asked *next;
};
static struct asked *all_asked;
static uint64_t met_by;
static int my_seat = -1;
static bool leaving;

static struct asked *asked_for(uint64_t id) {
    struct asked *asked = all_asked;
    while (asked && asked->id != id)
        asked = asked->next;
    return asked;
}

void join_say(const char *why) {
    fprintf(stderr, "CPU build: the ranks with this unique id cannot meet: %s\n", why);
}

static void refuse(struct asked *asked, const char *why) {
    asked->answer = JOIN_NONE;
    snprintf(asked->why, sizeof asked->why, "%s", why);
    join_say(why);
}

/* --- How the others end ----------------------------------------------------------- */

/* Each process of the job has a socket of this name, until it ends. */
static int mailbox = -1;

static uint64_t mailbox_of(int rank) {
    return met_by ^ (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15;
}

struct gone {
    int32_t rank, how; // see join_leave()
    int32_t tells;     // whoever gets this is to say it to the user
};

static int ranks_in_job(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    return first_set(names);
}

static void tell_others(int how) {
    struct gone gone = {.rank = rank_in_job(), .how = how, .tells = how != JOIN_SAID};
    for (int rank = 0; rank < ranks_in_job(); rank++) {
        int other =
            rank == gone.rank ? -1 : named_socket(mailbox_of(rank), SOCK_DGRAM, connect);
        if (other >= 0 &&
            send(other, &gone, sizeof gone, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            gone.tells = false;
        close(other);
    }
}

/* Without a word: who has no socket any more? (All have one when MPI has started.) */
static struct gone look_for_gone(void) {
    struct gone gone = {.rank = -1, .how = JOIN_SILENT, .tells = true};
    for (int rank = ranks_in_job() - 1; rank >= 0 && wire_is_open(); rank--) {
        int other = named_socket(mailbox_of(rank), SOCK_DGRAM, connect);
        if (other < 0)
            gone.rank = rank;
        else if (rank < rank_in_job())
            gone.tells = false;
        close(other);
    }
    return gone;
}

static void say_who_has_gone(const struct gone *gone) {
    char how[80] = "has crashed, was killed or has called _exit";
    fflush(stdout);
    if (gone->how >= 0)
        snprintf(how, sizeof how, "has ended with exit code %d", gone->how);
    if (gone->rank >= 0)
        fprintf(stderr, "CPU build: rank %d %s, and all other ranks end with it\n",
                gone->rank, how);
    else
        fprintf(stderr, "CPU build: mpirun, which connects the ranks, has ended, and they"
                        " end with it\n");
}

/* Another process of the job has gone, mpirun ends the job, and this one goes, too. */
static void *watch(void *unused) {
    struct gone gone;
    char none;
    (void)unused;
    if (read(my_seat, &none, 1) > 0 || leaving)
        return NULL;
    bool told = recv(mailbox, &gone, sizeof gone, MSG_DONTWAIT) == (long)sizeof gone;
    if (!told)
        gone = look_for_gone();
    if (gone.tells)
        say_who_has_gone(&gone);
    if (!told)
        usleep(300000); // the others look for this one, too
    _exit(1);
}

static bool sit_down(int seat, uint64_t id) {
    static char message[JOIN_ENVIRONMENT];
    pthread_t thread;
    int inherited;
    long bytes = join_receive(seat, message, sizeof message, &inherited);
    if (bytes <= (long)sizeof(struct hail))
        return false;
    for (char *at = message + sizeof(struct hail); at < message + bytes;) {
        char *next = at + strlen(at) + 1, *value = strchr(at, '=');
        if (value) {
            *value = '\0';
            setenv(at, value + 1, 1);
        }
        at = next;
    }
    if (inherited >= 0) {
        snprintf(message, sizeof message, "%d", inherited);
        setenv("PMI_FD", message, 1);
    }
    met_by = id;
    my_seat = seat;
    mailbox = named_socket(mailbox_of(rank_in_job()), SOCK_DGRAM, bind);
    if (pthread_create(&thread, NULL, watch, NULL) == 0) {
        pthread_setname_np(thread, "nccl-cpu"); // not the program's own
        pthread_detach(thread);
    }
    return true;
}

static void hear(struct asked *asked) {
    struct answer answer = {0};
    int seat;
    if (poll(&(struct pollfd){.fd = asked->usher, .events = POLLIN}, 1, 0) != 1)
        return;
    long got = join_receive(asked->usher, &answer, sizeof answer, &seat);
    if (got < 0 && errno == ECONNRESET) // it went on to say something after the answer
        got = join_receive(asked->usher, &answer, sizeof answer, &seat);
    if (got != (long)sizeof answer) {
        refuse(asked, "the process that made it has ended");
    } else if (answer.what == JOIN_NONE || answer.what == JOIN_MISUSED) {
        asked->answer = (enum join_answer)answer.what; // which has been said
        snprintf(asked->why, sizeof asked->why, "%s", answer.text);
    } else if (answer.what != JOIN_TAKE) {
        asked->answer = (enum join_answer)answer.what;
    } else if (my_seat < 0 && sit_down(seat, asked->id)) {
        asked->answer = JOIN_TAKE;
    } else {
        close(seat);
        refuse(asked, "this process is in a different job already: begin with mpirun");
    }
    close(asked->usher);
    asked->usher = -1;
}

/* The process that makes the ids of this run, if it comes soon, hears of one that has
 * another id, and later that its process has ended: the socket stays open until then. */
static void tell_family(struct hail hail) {
    const uint64_t family = join_family();
    const double end = now() + base_patience() / 2;
    int usher = -1;
    for (; family && usher < 0 && now() < end; usleep(10000))
        usher = join_connect(family);
    hail.lost = true;
    join_send(usher, &hail, sizeof hail, -1);
}

void join_ask(uint64_t maker, struct hail hail, bool called) {
    struct asked *asked = asked_for(hail.id);
    if (!asked) {
        asked = base_alloc(sizeof *asked);
        *asked = (struct asked){
            .id = hail.id, .usher = join_connect(maker), .next = all_asked};
        // With NCCL_COMM_ID it may be about to listen.
        for (int i = 0; maker == hail.id && asked->usher < 0 && i < 100; i++) {
            usleep(1000);
            asked->usher = join_connect(maker);
        }
        asked->ranks = base_alloc((size_t)hail.nranks * sizeof *asked->ranks);
        asked->nranks = hail.nranks;
        all_asked = asked;
    }
    bool differs = hail.nranks != asked->nranks; // which is the usher's to refuse
    static __thread char thread;
    const char *first = differs ? NULL : asked->ranks[hail.rank];
    hail.twice = called && first && first != &thread; // by the same one: after an error
    if (asked->answer != JOIN_WAIT || (first && !hail.twice))
        return;
    if (!differs)
        asked->ranks[hail.rank] = &thread;
    hail.process = base_process();
    if (join_send(asked->usher, &hail, sizeof hail, -1))
        return;
    hear(asked); // another rank of this process may have been answered
    if (asked->answer != JOIN_WAIT)
        return;
    tell_family(hail);
    refuse(asked, "the process that made it has ended (an id of an earlier run?), or"
                  " is on another machine or in another container: begin with mpirun");
}

bool join_settled(const void *unused) {
    bool settled = true;
    (void)unused;
    for (struct asked *asked = all_asked; asked; asked = asked->next) {
        if (asked->answer == JOIN_WAIT)
            hear(asked);
        settled &= asked->answer != JOIN_WAIT;
    }
    return settled || join_taken();
}

bool join_taken(void) {
    return my_seat >= 0;
}

uint64_t join_id(void) {
    return met_by;
}

int join_nranks(void) {
    return asked_for(met_by)->nranks;
}

const char *join_refused(uint64_t id) {
    const struct asked *asked = asked_for(id);
    return asked && asked->answer >= JOIN_NONE ? asked->why : NULL;
}

bool join_misused(uint64_t id) {
    const struct asked *asked = asked_for(id);
    return asked && asked->answer == JOIN_MISUSED;
}

void join_leave(int how) {
    leaving = true;
    if (my_seat >= 0 && how == 0)
        send(my_seat, "", 1, MSG_NOSIGNAL);
    else if (my_seat >= 0)
        tell_others(how);
}
