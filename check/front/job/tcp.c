/*
 * tcp.c: from judge to judge over TCP. See tcp.h.
 *
 * A connection begins with the token, both ways. Then frames follow: who sends, for whom,
 * what, and so many bytes. The hub passes on what is for others.
 */
#define _GNU_SOURCE
#include "tcp.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 16, FIRST_PORT = 20000, MANY_PORTS = 12000, BACKLOG = 1024 };
enum kind { PARCEL, ALL_HERE, LEAVES, ENDS_JOB };

struct hello {
    uint64_t token;
    int32_t rank, nranks;
};

struct frame {
    uint32_t bytes;
    int32_t from, to, kind;
};

struct bytes {
    char *data;
    size_t n, room;
};

/* To one other process. Of the hub: one for each rank; of others: one, to the hub. */
struct way {
    int fd;
    bool greeted; // the other side has shown the token
    bool left;    // the other side has said that it leaves
    struct bytes in, out;
};

struct parcel {
    struct parcel *next;
    int from;
    size_t bytes;
    char *data;
};

static struct {
    bool runs, is_hub, said; // said: this side has shown the token
    int rank, nranks, listens, port, lost;
    pid_t process;
    uint64_t token, job; // job: of this run alone
    double begun, tried;
    struct sockaddr_storage hub;
    struct way *ways; // by rank; of a process that is not the hub only [0]
    struct way *new_ones;
    int nnew, nhere, nleft;
    bool all_here, ended, broken, leaves;
    struct parcel *come, **come_end;
} tcp;

/* The helper's thread uses it, and the one that ends the job with a report. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void append(struct bytes *b, const void *data, size_t n) {
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void drop(struct bytes *b, size_t n) {
    b->n -= n;
    memmove(b->data, b->data + n, b->n);
}

static socklen_t address_length(int family) {
    return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The i-th port that a job with this token tries. */
static void set_port(struct sockaddr_storage *address, int i) {
    const int port =
        FIRST_PORT + (int)((tcp.token + (uint64_t)i * UINT64_C(7919)) % MANY_PORTS);
    ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port); // of IPv6, too
}

static int open_socket(int family) {
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int one = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* On all addresses of the machine, as PyTorch's store does: its own name may mean another
 * one to it (127.0.1.1) than to other machines. */
static bool listens(void) {
    for (int i = 0; i < 2 * PORTS; i++) {
        const int family = i < PORTS ? AF_INET6 : AF_INET, of_both = 0;
        struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
        set_port(&any, i % PORTS);
        int fd = open_socket(family);
        if (fd >= 0 && family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &of_both, sizeof of_both);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&any, address_length(family)) == 0 &&
            listen(fd, BACKLOG) == 0) {
            tcp.listens = fd;
            return true;
        }
        if (fd >= 0)
            close(fd);
    }
    return false;
}

bool tcp_begins(const struct sockaddr *address, uint64_t token, int rank, int nranks,
                bool is_hub) {
    tcp.come_end = &tcp.come;
    tcp.token = token, tcp.rank = rank, tcp.nranks = nranks, tcp.is_hub = is_hub;
    tcp.begun = now();
    tcp.tried = 0;
    tcp.listens = tcp.lost = -1;
    memcpy(&tcp.hub, address, address_length(address->sa_family));
    tcp.ways = must_alloc((size_t)(is_hub ? nranks : 1) * sizeof *tcp.ways);
    for (int i = 0; i < (is_hub ? nranks : 1); i++)
        tcp.ways[i].fd = -1;
    tcp.process = getpid();
    tcp.nhere = 1;
    tcp.all_here = nranks == 1;
    tcp.runs = !is_hub || nranks == 1 || listens();
    return tcp.runs;
}

bool tcp_runs(void) {
    return tcp.runs;
}

bool tcp_runs_here(void) {
    return tcp.runs && tcp.process == getpid();
}

static void hang_up(struct way *way) {
    if (way->fd >= 0)
        close(way->fd);
    way->fd = -1;
    way->greeted = false;
    way->in.n = 0;
}

/* What is open here would keep the others from noticing the parent's end. */
void tcp_forked(void) {
    for (int i = 0; tcp.ways && i < (tcp.is_hub ? tcp.nranks : 1); i++)
        hang_up(&tcp.ways[i]);
    for (int i = 0; i < tcp.nnew; i++)
        hang_up(&tcp.new_ones[i]);
    if (tcp.ways && tcp.listens >= 0)
        close(tcp.listens);
    tcp.runs = false; // the parent's
}

int tcp_lost_rank(void) {
    return tcp.lost;
}

double tcp_missing(int *n) {
    *n = tcp.nranks - tcp.nhere;
    return now() - tcp.begun;
}

static struct way *way_to(int rank) {
    return &tcp.ways[tcp.is_hub ? rank : 0];
}

static void put_frame(struct way *way, struct frame frame, const void *data) {
    append(&way->out, &frame, sizeof frame);
    append(&way->out, data, frame.bytes);
}

static void tell_all(enum kind kind, const void *data, size_t bytes) {
    for (int rank = 0; rank < (tcp.is_hub ? tcp.nranks : 1); rank++)
        if (!tcp.is_hub || rank != tcp.rank)
            put_frame(way_to(rank),
                      (struct frame){(uint32_t)bytes, tcp.rank, rank, (int32_t)kind},
                      data);
}

void tcp_sends(int to, const void *data, size_t bytes) {
    pthread_mutex_lock(&lock);
    if (to >= 0 && to < tcp.nranks && to != tcp.rank)
        put_frame(way_to(to), (struct frame){(uint32_t)bytes, tcp.rank, to, PARCEL},
                  data);
    pthread_mutex_unlock(&lock);
}

bool tcp_receives(int *from, void **data, size_t *bytes) {
    pthread_mutex_lock(&lock);
    struct parcel *first = tcp.all_here ? tcp.come : NULL;
    if (first && !(tcp.come = first->next))
        tcp.come_end = &tcp.come;
    pthread_mutex_unlock(&lock);
    if (!first)
        return false;
    *from = first->from, *data = first->data, *bytes = first->bytes;
    free(first);
    return true;
}

static void has_come(const struct frame *frame, const char *data) {
    struct parcel *parcel = must_alloc(sizeof *parcel);
    *parcel = (struct parcel){.from = frame->from, .bytes = frame->bytes};
    parcel->data = must_alloc(frame->bytes + 1);
    memcpy(parcel->data, data, frame->bytes);
    *tcp.come_end = parcel;
    tcp.come_end = &parcel->next;
}

static void take_frame(struct way *way, const struct frame *frame, const char *data) {
    switch ((enum kind)frame->kind) {
    case PARCEL:
        if (frame->to == tcp.rank)
            has_come(frame, data);
        else if (tcp.is_hub && frame->to >= 0 && frame->to < tcp.nranks)
            put_frame(way_to(frame->to), *frame, data);
        break;
    case ALL_HERE:
        tcp.all_here = true;
        memcpy(&tcp.job, data, sizeof tcp.job);
        break;
    case LEAVES:
        tcp.nleft += !way->left;
        way->left = true;
        break;
    case ENDS_JOB:
        tcp.ended = true;
        for (int rank = 0; tcp.is_hub && rank < tcp.nranks; rank++)
            if (rank != tcp.rank && rank != frame->from)
                put_frame(way_to(rank), *frame, NULL);
        break;
    }
}

/* What has come on a way; false: it has ended. */
static bool reads(struct way *way) {
    char buffer[65536];
    ssize_t got;
    while ((got = read(way->fd, buffer, sizeof buffer)) > 0)
        append(&way->in, buffer, (size_t)got);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void takes(struct way *way) {
    size_t at = 0;
    struct frame frame;
    while (way->greeted && way->in.n - at >= sizeof frame) {
        memcpy(&frame, way->in.data + at, sizeof frame);
        if (way->in.n - at - sizeof frame < frame.bytes)
            break;
        at += sizeof frame;
        take_frame(way, &frame, way->in.data + at);
        at += frame.bytes;
    }
    if (at > 0)
        drop(&way->in, at);
}

/* (Until all are here, the hub keeps what is for the others: one may have to come again.)
 */
static void writes(struct way *way) {
    const bool may = tcp.all_here || tcp.leaves || !tcp.is_hub;
    while (way->greeted && may && way->out.n > 0) {
        ssize_t put = send(way->fd, way->out.data, way->out.n, MSG_NOSIGNAL);
        if (put <= 0)
            return;
        drop(&way->out, (size_t)put);
    }
}

static bool says_hello(const struct way *way) {
    const struct hello hello = {tcp.token, tcp.rank, tcp.nranks};
    return send(way->fd, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
}

/* The rank on the other side, once it has shown the token. */
enum { NOT_YET = -1, STRANGER = -2 };
static int hello_of(struct way *way) {
    struct hello hello;
    bool open = reads(way);
    if (way->in.n < sizeof hello)
        return open ? NOT_YET : STRANGER;
    memcpy(&hello, way->in.data, sizeof hello);
    drop(&way->in, sizeof hello);
    bool ours = hello.token == tcp.token && hello.nranks == tcp.nranks &&
                hello.rank >= 0 && hello.rank < tcp.nranks && hello.rank != tcp.rank;
    return ours && (open || !tcp.is_hub) ? hello.rank : STRANGER; // it may have given up
}

/* A process that has connected to the hub becomes a rank when it has shown the token. */
static void takes_newcomers(void) {
    for (int fd;
         (fd = accept4(tcp.listens, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        tcp.new_ones =
            realloc(tcp.new_ones, (size_t)(tcp.nnew + 1) * sizeof *tcp.new_ones);
        tcp.new_ones[tcp.nnew++] = (struct way){.fd = fd};
    }
    for (int i = 0; i < tcp.nnew; i++) {
        struct way *new = &tcp.new_ones[i];
        const int rank = hello_of(new);
        if (rank == NOT_YET)
            continue;
        struct way *way = rank >= 0 ? &tcp.ways[rank] : NULL;
        if (way && way->fd < 0 && says_hello(new)) {
            way->fd = new->fd;
            way->in = new->in;
            way->greeted = true;
            tcp.nhere++;
        } else {
            close(new->fd);
        }
        *new = tcp.new_ones[--tcp.nnew];
        i--;
    }
    if (!tcp.all_here && tcp.nhere == tcp.nranks) {
        tcp.all_here = true;
        tcp.job = tcp.token ^ (uint64_t)(now() * 1e9) ^ (uint64_t)getpid() << 40;
        tell_all(ALL_HERE, &tcp.job, sizeof tcp.job);
        close(tcp.listens);
        tcp.listens = -1;
    }
}

/* The hub has answered a connection with the token. */
static bool hub_answers(struct way *way) {
    struct pollfd writable = {way->fd, POLLOUT, 0};
    if (!tcp.said && poll(&writable, 1, 0) == 1) {
        tcp.said = says_hello(way);
        tcp.tried = now(); // this process may have been stopped since
        if (!tcp.said)
            hang_up(way);
    }
    const int rank = tcp.said ? hello_of(way) : NOT_YET;
    if (rank == STRANGER)
        hang_up(way);
    return rank >= 0;
}

/* Connects to the hub: port after port, until one answers with the token. */
static void looks_for_hub(void) {
    struct way *way = &tcp.ways[0];
    if (way->fd >= 0 && hub_answers(way)) {
        way->greeted = true;
        tcp.nhere = 2;
        return;
    }
    const double since = now() - tcp.tried;
    if (since < (way->fd >= 0 ? 3 : 0.01))
        return;
    hang_up(way);
    struct sockaddr_storage address = tcp.hub;
    set_port(&address, tcp.port++ % PORTS);
    tcp.tried = now();
    tcp.said = false;
    way->fd = open_socket(address.ss_family);
    if (way->fd >= 0 &&
        connect(way->fd, (struct sockaddr *)&address,
                address_length(address.ss_family)) != 0 &&
        errno != EINPROGRESS)
        hang_up(way);
}

static void uses(struct way *way, int rank) {
    if (way->fd < 0)
        return;
    bool open = reads(way);
    takes(way);
    writes(way);
    if (open)
        return;
    hang_up(way);
    if (tcp.is_hub && !tcp.all_here && !way->left) {
        tcp.nhere--; // it may come again
    } else if (!way->left && !tcp.broken) {
        tcp.broken = true;
        tcp.lost = tcp.is_hub ? rank : -1;
    }
}

static enum tcp_state one_round(void) {
    if (tcp.is_hub) {
        if (!tcp.all_here)
            takes_newcomers();
        for (int rank = 0; rank < tcp.nranks; rank++)
            uses(&tcp.ways[rank], rank);
    } else if (!tcp.ways[0].greeted && !tcp.broken && tcp.nhere == 1) {
        looks_for_hub();
    } else {
        uses(&tcp.ways[0], -1);
    }
    if (tcp.ended)
        return TCP_ENDED;
    if (tcp.broken)
        return TCP_LOST;
    if (!tcp.is_hub && tcp.ways[0].left)
        return TCP_OVER;
    return tcp.all_here ? TCP_ALL_HERE : TCP_MEETS;
}

enum tcp_state tcp_round(void) {
    pthread_mutex_lock(&lock);
    enum tcp_state state = one_round();
    pthread_mutex_unlock(&lock);
    return state;
}

uint64_t tcp_job(void) {
    return tcp.job;
}

static bool is_sending(void) {
    for (int rank = 0; rank < (tcp.is_hub ? tcp.nranks : 1); rank++)
        if (tcp.ways[rank].fd >= 0 && tcp.ways[rank].out.n > 0)
            return true;
    return false;
}

static void rests(void) {
    poll(NULL, 0, 2);
}

static void sends_the_rest(double seconds) {
    tcp.leaves = true;
    for (double end = now() + seconds; now() < end && !tcp.broken && is_sending();
         rests())
        one_round();
}

void tcp_ends_job(void) {
    pthread_mutex_lock(&lock);
    if (tcp.runs && !tcp.ended) {
        tell_all(ENDS_JOB, NULL, 0);
        sends_the_rest(0.5);
    }
    pthread_mutex_unlock(&lock);
}

bool tcp_alone(void) {
    return !tcp.is_hub || !tcp.all_here || tcp.broken || tcp.ended ||
           tcp.nleft >= tcp.nranks - 1;
}

void tcp_leaves(void) {
    pthread_mutex_lock(&lock);
    tell_all(LEAVES, NULL, 0);
    sends_the_rest(1);
    tcp.runs = false;
    pthread_mutex_unlock(&lock);
}
