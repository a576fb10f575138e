/*
 * rendezvous.c: how the checks of a job's processes find one another without MPI.
 */
#define _GNU_SOURCE
#include "rendezvous.h"

#include "base/base.h"
#include "links.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDS = 64 };
static ncclUniqueId made[IDS]; // by this process
static int nmade;
static bool guessed; // the job's size

void rendezvous_id_made(const ncclUniqueId *id) {
    made[nmade++ % IDS] = *id;
}

static bool is_mine(const ncclUniqueId *id) {
    for (int i = 0; i < nmade && i < IDS; i++)
        if (memcmp(&made[i], id, sizeof *id) == 0)
            return true;
    return false;
}

static uint64_t add_variable(uint64_t token, const char *name) {
    const char *value = getenv(name) ? getenv(name) : "";
    return hash_bytes(value, strlen(value) + 1, token);
}

static bool number(const char *name, int *value) {
    const char *text = getenv(name);
    char *end = NULL;
    long all = text ? strtol(text, &end, 10) : -1;
    *value = (int)all;
    return text && end != text && !*end && all >= 0 && all < 1 << 24;
}

/* An address that NCCL has written into the id: after a number of 8 bytes (bootstrap.h,
 * struct ncclBootstrapHandle; NCCL 2.18 to 2.32). False: there is none. */
static bool address_in(const ncclUniqueId *id, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    memcpy(address, id->internal + 8, sizeof(struct sockaddr_in6));
    return address->ss_family == AF_INET || address->ss_family == AF_INET6;
}

static bool resolve(const char *name, struct sockaddr_storage *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    bool known = found->ai_family == AF_INET || found->ai_family == AF_INET6;
    if (known)
        memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return known;
}

bool rendezvous_size_is_guessed(void) {
    return guessed;
}

const char *rendezvous_begins(const ncclUniqueId *ids, int nids, int *rank, int *nranks) {
    struct sockaddr_storage address;
    const uid_t user = getuid();
    uint64_t token = hash_bytes(&user, sizeof user, 0);
    int place, size;
    bool hub;
    if (number("RANK", &place) && number("WORLD_SIZE", &size) && size >= *nranks &&
        place < size) {
        const char *name = getenv("MASTER_ADDR");
        if (!resolve(name && *name ? name : "127.0.0.1", &address))
            return "the address in MASTER_ADDR, where the checks would find one another,"
                   " is not known";
        // Not MASTER_ADDR: a machine's name and its address are the same to a program.
        static const char *const names[] = {"MASTER_PORT", "WORLD_SIZE",
                                            "TORCHELASTIC_RUN_ID",
                                            "TORCHELASTIC_RESTART_COUNT"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            token = add_variable(token, names[i]);
        *rank = place, *nranks = size;
        hub = place == 0;
    } else {
        guessed = true;
        if (nids != 1 || !address_in(&ids[0], &address))
            return "no variables RANK and WORLD_SIZE say who this process is, and its"
                   " unique id no address: start it with torchrun, or call MPI_Init";
        token = hash_bytes(&ids[0], sizeof ids[0], token);
        hub = is_mine(&ids[0]);
    }
    if (!link_tcp_opens((struct sockaddr *)&address, token, *rank, *nranks, hub))
        return "no TCP port is free, by which the checks would find one another";
    return NULL;
}
