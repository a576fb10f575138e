/*
 * store.h: a key-value store over TCP, like PyTorch's TCPStore.
 *
 * Rank 0 keeps the values and listens. All ranks are clients, rank 0 too: set stores a
 * value, get waits until it is there. A value has at most 256 bytes. Every call that runs
 * out of time ends the process with a message.
 */
#ifndef STORE_H
#define STORE_H

#include "lesson.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What travels, both ways. The greeting tells our ranks from strangers. */
struct store_message {
    char greeting[8], key[32], value[256];
    int set, length;
};

struct store {
    int client, listener, seconds, port;
    const char *address;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct store_message *values; // rank 0's
    int nvalues, room;
};

static const char store_greeting[8] = "course1";

/* Whether all bytes came, or went, before the socket's time was over. */
static inline bool store_move(int fd, void *bytes, size_t n, bool out) {
    for (size_t done = 0; done < n;) {
        char *at = (char *)bytes + done;
        ssize_t moved =
            out ? send(fd, at, n - done, MSG_NOSIGNAL) : recv(fd, at, n - done, 0);
        if (moved == 0)
            errno = 0;                    // the other side has closed the connection
        if (moved <= 0 && errno != EINTR) // EINTR: this process was stopped meanwhile
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

struct store_client {
    struct store *store;
    int fd;
};

/* Rank 0's thread for one client: answers until it goes. */
static inline void *store_serve(void *argument) {
    struct store_client client = *(struct store_client *)argument;
    struct store *s = client.store;
    struct store_message m;
    free(argument);
    while (store_move(client.fd, &m, sizeof m, false)) {
        if (memcmp(m.greeting, store_greeting, sizeof m.greeting) != 0)
            break; // a stranger: a port scanner, a browser, another job
        pthread_mutex_lock(&s->lock);
        if (m.set) {
            if (s->nvalues == s->room) {
                s->room = 2 * s->room + 64;
                s->values = realloc(s->values, (size_t)s->room * sizeof m);
                if (!s->values)
                    lesson_fail("no memory is left for the store");
            }
            s->values[s->nvalues++] = m;
            pthread_cond_broadcast(&s->changed);
        }
        for (int i = 0; !m.set; i++) {
            while (i == s->nvalues) // not there yet
                pthread_cond_wait(&s->changed, &s->lock);
            if (strcmp(s->values[i].key, m.key) == 0) {
                m = s->values[i];
                break;
            }
        }
        pthread_mutex_unlock(&s->lock);
        if (!store_move(client.fd, &m, sizeof m, true))
            break;
    }
    close(client.fd);
    return NULL;
}

/* Rank 0's thread that takes the clients in. */
static inline void *store_listen(void *argument) {
    struct store *s = argument;
    for (int fd; (fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        struct store_client *client = lesson_malloc(sizeof *client);
        pthread_t thread;
        *client = (struct store_client){s, fd};
        if (pthread_create(&thread, NULL, store_serve, client) == 0)
            pthread_detach(thread);
    }
    return NULL;
}

/* Opens the store at address:port, a name or an IPv4 address. Rank 0 listens there, all
 * connect to it. */
static inline struct store *store_open(const char *address, int port, int rank,
                                       int seconds) {
    struct store *s = lesson_malloc(sizeof *s);
    memset(s, 0, sizeof *s);
    s->address = address, s->port = port, s->seconds = seconds;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (rank == 0) {
        struct sockaddr_in any = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};
        int yes = 1;
        pthread_t thread;
        // CLOEXEC: a program that this rank starts must not keep the port open.
        s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(s->listener, (struct sockaddr *)&any, sizeof any) != 0 ||
            listen(s->listener, 1024) != 0)
            lesson_fail("cannot listen at port %d: %s\n  Hint: another job may use it; "
                        "MASTER_PORT chooses another, the same for all ranks.",
                        port, strerror(errno));
        pthread_create(&thread, NULL, store_listen, s);
    }
    // Rank 0 may start later than this one: try until the time is over.
    struct addrinfo *found, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(address, service, &hints, &found);
    if (error)
        lesson_fail("MASTER_ADDR=%s: %s", address, gai_strerror(error));
    struct timeval limit = {.tv_sec = seconds};
    for (time_t end = time(NULL) + seconds;;
         nanosleep(&(struct timespec){0, 50000000}, NULL)) {
        s->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        // Where a firewall drops what it gets, connect would wait for minutes.
        setsockopt(s->client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(s->client, found->ai_addr, found->ai_addrlen) == 0)
            break;
        if (time(NULL) >= end)
            lesson_fail("nobody answers at %s:%d: %s\n  Hint: is rank 0 running, and is "
                        "MASTER_ADDR its machine?",
                        address, port, strerror(errno));
        close(s->client);
    }
    freeaddrinfo(found);
    setsockopt(s->client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return s;
}

/* Sends a message and returns the store's answer: the value that the key has now. */
static inline struct store_message store_ask(struct store *s, int set, const char *key,
                                             const void *value, size_t length) {
    struct store_message m = {.set = set, .length = (int)length}, answer = {.set = 0};
    memcpy(m.greeting, store_greeting, sizeof m.greeting);
    snprintf(m.key, sizeof m.key, "%s", key);
    if (set)
        memcpy(m.value, value, length);
    const bool whole = store_move(s->client, &m, sizeof m, true) &&
                       store_move(s->client, &answer, sizeof answer, false);
    if (whole && memcmp(answer.greeting, m.greeting, sizeof m.greeting) == 0 &&
        memcmp(answer.key, m.key, sizeof m.key) == 0 &&
        answer.set) { // a message without `set` is a question
        if (answer.length != m.length)
            lesson_fail("\"%s\" has %d bytes in the store, and this rank means %d", key,
                        answer.length, m.length);
        return answer;
    }
    if (whole || answer.greeting[0])
        lesson_fail("what answers at %s:%d is not this program's store\n  Hint: does "
                    "another program use the port? MASTER_PORT chooses another, the same "
                    "for all ranks.",
                    s->address, s->port);
    if (errno == EAGAIN) // the time is over
        lesson_fail("the store at %s:%d has no \"%s\" after %d s", s->address, s->port,
                    key, s->seconds);
    lesson_fail("the store at %s:%d has closed the connection, and \"%s\" was not there "
                "yet: has rank 0 ended?",
                s->address, s->port, key);
}

static inline void store_set(struct store *s, const char *key, const void *value,
                             size_t length) {
    store_ask(s, 1, key, value, length);
}

static inline void store_get(struct store *s, const char *key, void *value,
                             size_t length) {
    struct store_message answer = store_ask(s, 0, key, NULL, length);
    if (value)
        memcpy(value, answer.value, length);
}

static inline void store_close(struct store *s) {
    close(s->client);
    if (s->listener)
        shutdown(s->listener, SHUT_RDWR);
}

#endif
