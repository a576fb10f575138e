/*
 * seats.c has the side of a process that wants to be in an MPI job, and of one that holds
 * a seat there for it.
 */
#define _GNU_SOURCE
#include "seats.h"

#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

/* --- Sockets ---------------------------------------------------------------------- */

static int new_socket(uint64_t maker, struct sockaddr_un *address, socklen_t *length) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    // A zero byte first: a name that is no file, and goes when its socket does.
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1,
                     "nccl-cpu-%016llx", (unsigned long long)maker);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int seats_listen(uint64_t maker) {
    struct sockaddr_un address;
    socklen_t length;
    int made = new_socket(maker, &address, &length);
    if (made >= 0 && bind(made, (struct sockaddr *)&address, length) == 0 &&
        listen(made, SOMAXCONN) == 0)
        return made;
    if (made >= 0)
        close(made);
    return -1;
}

int seats_connect(uint64_t maker) {
    struct sockaddr_un address;
    socklen_t length;
    int made = new_socket(maker, &address, &length);
    if (made >= 0 && connect(made, (struct sockaddr *)&address, length) == 0)
        return made;
    if (made >= 0)
        close(made);
    return -1;
}

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

bool seats_send(int socket, const void *data, size_t bytes, int descriptor) {
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

long seats_receive(int socket, void *data, size_t bytes, int *descriptor) {
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

static int rank_in_job(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return -1;
}

void seats_hold(void) {
    const char *whose = getenv(SEATS_HOLD);
    static char message[SEATS_ENVIRONMENT];
    struct hail hail = {.rank = rank_in_job(), .seat = true};
    unsigned long long maker, id;
    if (!whose)
        return;
    if (sscanf(whose, "%llx %llx", &maker, &id) != 2)
        _exit(1);
    int usher = seats_connect(maker);
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
    if (!seats_send(usher, message, bytes, inherited))
        _exit(1);
    // One byte: its process has ended well.
    _exit(read(usher, message, 1) == 1 ? 0 : 1);
}

/* --- Who wants one ---------------------------------------------------------------- */

struct asked {
    uint64_t id;
    int usher; // a socket
    enum seats_answer answer;
    char why[SEATS_TEXT];
    bool *ranks; // of this process
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

static void refuse(struct asked *asked, const char *why) {
    asked->answer = SEATS_NONE;
    snprintf(asked->why, sizeof asked->why, "%s", why);
}

void seats_ask(uint64_t maker, uint64_t id, int rank, int nranks, bool has_mpi) {
    struct asked *asked = asked_for(id);
    if (!asked) {
        asked = must_alloc(sizeof *asked);
        *asked =
            (struct asked){.id = id, .usher = seats_connect(maker), .next = all_asked};
        // With NCCL_COMM_ID it may be about to listen.
        for (int i = 0; maker == id && asked->usher < 0 && i < 100; i++) {
            usleep(1000);
            asked->usher = seats_connect(maker);
        }
        asked->ranks = must_alloc((size_t)nranks * sizeof *asked->ranks);
        all_asked = asked;
    }
    if (asked->ranks[rank] || asked->answer != SEATS_WAIT)
        return;
    asked->ranks[rank] = true;
    struct hail hail = {.id = id, .rank = rank, .nranks = nranks, .has_mpi = has_mpi};
    hail.process = base_process();
    if (!seats_send(asked->usher, &hail, sizeof hail, -1))
        refuse(asked, "the process that made it has ended, or runs on another machine or"
                      " in another container");
}

/* Others of the job have gone, and mpirun ends it. */
static void *watch(void *unused) {
    char none;
    (void)unused;
    if (read(my_seat, &none, 1) <= 0 && !leaving) {
        fflush(stdout);
        fprintf(stderr, "CPU build: the job has ended, and this process with it\n");
        _exit(1);
    }
    return NULL;
}

static bool sit_down(int seat) {
    static char message[SEATS_ENVIRONMENT];
    pthread_t thread;
    int inherited;
    long bytes = seats_receive(seat, message, sizeof message, &inherited);
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
    my_seat = seat;
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
    if (seats_receive(asked->usher, &answer, sizeof answer, &seat) !=
        (long)sizeof answer) {
        refuse(asked, "the process that made it has ended");
    } else if (answer.what == SEATS_NONE) {
        refuse(asked, answer.text);
    } else if (answer.what != SEATS_TAKE) {
        asked->answer = (enum seats_answer)answer.what;
    } else if (my_seat < 0 && sit_down(seat)) {
        asked->answer = SEATS_TAKE;
        met_by = asked->id;
    } else {
        close(seat);
        refuse(asked, "this process is in a different job already");
    }
    close(asked->usher);
    asked->usher = -1;
}

bool seats_settled(const void *unused) {
    bool settled = true;
    (void)unused;
    for (struct asked *asked = all_asked; asked; asked = asked->next) {
        if (asked->answer == SEATS_WAIT)
            hear(asked);
        settled &= asked->answer != SEATS_WAIT;
    }
    return settled || seats_taken();
}

bool seats_taken(void) {
    return my_seat >= 0;
}

uint64_t seats_id(void) {
    return met_by;
}

const char *seats_refused(uint64_t id) {
    const struct asked *asked = asked_for(id);
    return asked && asked->answer == SEATS_NONE ? asked->why : NULL;
}

void seats_leave(void) {
    leaving = true;
    if (my_seat >= 0)
        send(my_seat, "", 1, MSG_NOSIGNAL);
}
