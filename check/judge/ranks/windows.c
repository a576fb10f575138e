/*
 * windows.c: puts into windows that the other rank has deregistered before. Both are told
 * to the communicator's keeper. Which came first is known where a barrier of all
 * processes lies between the two.
 *
 * nccl.h, ncclPutSignal: "peerWin: memory window object registered by the target peer".
 */
#include "ranks/windows.h"

#include "base/post.h"
#include "ranks/comms.h"
#include "say/report.h"

/* A put, or that a window is gone. `meetings`: of judge_meets, those that the rank had
 * left before it put, or entered before it deregistered. */
struct told {
    unsigned char message, put, pad[6];
    uint64_t comm, window, site, meetings;
    int32_t owner, world; // whose part of the window it is, in comm; who tells
    char call[CALL_NAME], host[JUDGE_HOST];
};

struct window { // one rank's part of it
    struct told gone, put;
};

static void tell(struct judge *j, const struct comm *comm, struct told told,
                 struct judge_at at) {
    told.message = MESSAGE_WINDOW;
    told.comm = comm->facts.id;
    told.site = at.site;
    told.world = j->rank;
    name_call(told.call, at.call);
    memcpy(told.host, j->host, sizeof told.host);
    if (comm->keeper >= 0 && j->options.mode != JUDGE_OFF)
        post(j, comm->keeper, &told, sizeof told);
}

uint64_t judge_window_made(struct judge *j, int comm) {
    return comm_of(j, comm) ? comm_of(j, comm)->collectives : 0;
}

void judge_window_gone(struct judge *j, int number, uint64_t window, struct judge_at at) {
    const struct comm *comm = comm_of(j, number);
    if (comm)
        tell(j, comm,
             (struct told){
                 .window = window, .meetings = j->meetings, .owner = comm->facts.rank},
             at);
}

/* Of the puts between two barriers one is enough. */
void windows_put(struct judge *j, const struct judge_put *put) {
    struct comm *comm = comm_of(j, put->comm);
    uint64_t key = mixed(put->window, (uint64_t)put->peer);
    if (!comm || j->met == 0)
        return;
    uint64_t *newest = map_get(&comm->puts, key);
    if (!newest)
        map_put(&comm->puts, key, newest = must_alloc(sizeof *newest));
    if (*newest == j->met)
        return;
    *newest = j->met;
    tell(j, comm,
         (struct told){
             .put = 1, .window = put->window, .meetings = j->met, .owner = put->peer},
         put->at);
}

static void set_told(struct judge *j, struct finding *f, const char *field,
                     const struct told *told) {
    char where[JUDGE_PLACE];
    set(f, field, "rank %d on %s: %s at %s", told->world, told->host, told->call,
        place(j, told->site, where));
}

void windows_receive(struct judge *j, const void *data, size_t bytes) {
    struct told told;
    if (bytes != sizeof told)
        return;
    memcpy(&told, data, sizeof told);
    uint64_t key = mixed(mixed(told.comm, told.window), (uint64_t)told.owner);
    struct window *window = map_get(&j->windows, key);
    if (!window)
        map_put(&j->windows, key, window = must_alloc(sizeof *window));
    *(told.put ? &window->put : &window->gone) = told;
    if (!window->gone.message || window->put.meetings <= window->gone.meetings)
        return;
    struct finding f = {.name = FINDING_memory_window_gone,
                        .site = window->put.site,
                        .other = window->gone.site};
    set(&f, "call", "%s", window->put.call);
    set_told(j, &f, "put", &window->put);
    set_told(j, &f, "gone", &window->gone);
    say(j, &f);
}
