/*
 * judge.c: the threads of the program, what is said between ranks, and events that
 * several parts hear of.
 */
#define _POSIX_C_SOURCE 200809L
#include "judge.h"

#include "base/messages.h"
#include "history/allocations.h"
#include "history/background.h"
#include "ranks/round_trips.h"
#include "history/functions.h"
#include "history/graphs.h"
#include "history/groups.h"
#include "history/host_knows.h"
#include "history/issue.h"
#include "ranks/compare.h"
#include "say/words.h"
#include "stuck/stuck.h"
#include "stuck/waits.h"

#include <stdio.h>

struct judge *judge_new(const struct judge_outside *outside,
                        const struct judge_options *options) {
    struct judge *j = must_alloc(sizeof *j);
    j->outside = *outside;
    j->options = *options;
    j->nranks = 1;
    snprintf(j->host, sizeof j->host, "this host");
    pthread_mutex_init(&j->lock, NULL);
    j->order = must_alloc(sizeof *j->order);
    j->uses = must_alloc(sizeof *j->uses);
    j->functions = must_alloc(sizeof *j->functions);
    j->graphs = must_alloc(sizeof *j->graphs);
    j->reports = must_alloc(sizeof *j->reports);
    j->failures = must_alloc(sizeof *j->failures);
    j->background = must_alloc(sizeof *j->background);
    j->round_trips = must_alloc(sizeof *j->round_trips);
    j->calls = must_alloc(sizeof *j->calls);
    j->compare = must_alloc(sizeof *j->compare);
    j->members = must_alloc(sizeof *j->members);
    j->waits = must_alloc(sizeof *j->waits);
    j->stuck = must_alloc(sizeof *j->stuck);
    j->messages = must_alloc(sizeof *j->messages);
    return j;
}

static void thread_free(struct judge *j, struct thread *thread) {
    waits_thread_gone(j, thread);
    groups_free(thread->group);
    latest_free(thread->latest);
    free(thread->recent->at);
    free(thread->recent);
    free(thread);
}

void judge_free(struct judge *j) {
    while (j->threads) {
        struct thread *thread = j->threads;
        j->threads = thread->next;
        thread_free(j, thread);
    }
    free(j->waits);
    stuck_free(j->stuck);
    calls_free(j->calls);
    compare_free(j->compare);
    members_free(j->members);
    messages_free(j->messages);
    for (int s = 0; s < (int)j->order->streams.n; s++)
        graph_stream_gone(j, s);
    graphs_free(j->graphs);
    functions_free(j->functions);
    free(j->background->at);
    free(j->background);
    uses_free(j->uses);
    order_free(j->order);
    reports_free(j->reports);
    failures_free(j->failures);
    round_trips_free(j->round_trips);
    map_free(&j->threads_by_number);
    map_clear(&j->comm_names, free);
    windows_free(j);
    clock_free(&j->known);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

void judge_world(struct judge *j, int rank, int nranks, const char *host) {
    j->rank = rank;
    j->nranks = nranks;
    snprintf(j->host, sizeof j->host, "%s", host);
}

void judge_set(struct judge *j, const struct judge_options *options) {
    j->options = *options;
}

void judge_enter(struct judge *j, int number) {
    pthread_mutex_lock(&j->lock);
    j->entered = true;
    j->moment = 0;
    j->thread = NULL;
    if (!number)
        return;
    if (!j->newest || j->newest->number != number)
        j->newest = map_get(&j->threads_by_number, (uint64_t)number);
    if ((j->thread = j->newest))
        return;
    struct thread *thread = must_alloc(sizeof *thread);
    thread->number = number;
    thread->latest = must_alloc(sizeof *thread->latest);
    thread->recent = must_alloc(sizeof *thread->recent);
    thread->next = j->threads;
    j->threads = j->thread = thread;
    map_put(&j->threads_by_number, (uint64_t)number, thread);
}

void judge_leave(struct judge *j) {
    j->thread = NULL;
    j->entered = false;
    pthread_mutex_unlock(&j->lock);
}

void judge_thread_gone(struct judge *j, int number) {
    struct thread *thread = map_get(&j->threads_by_number, (uint64_t)number),
                  **at = &j->threads;
    if (!thread)
        return;
    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    map_put(&j->threads_by_number, (uint64_t)number, NULL);
    if (j->thread == thread)
        j->thread = NULL;
    if (j->newest == thread)
        j->newest = NULL;
    thread_free(j, thread);
}

void judge_thread_name(struct judge *j, uint64_t name) {
    j->thread->name = name;
}

/* What this judge has told itself. */
static void read_post(struct judge *j) {
    const void *data;
    size_t bytes;
    while ((data = message_take(j, &bytes)))
        judge_receive(j, j->rank, data, bytes);
}

bool judge_look(struct judge *j) {
    calls_flush(j, false);
    bool waits = waits_tell(j);
    read_post(j);
    compare_look(j);
    if (j->rank == 0) {
        members_look(j);
        stuck_look(j);
    }
    return waits;
}

void judge_last_look(struct judge *j) {
    j->last = true;
    judge_look(j);
}

void judge_receive(struct judge *j, int from, const void *data, size_t bytes) {
    switch (bytes ? *(const unsigned char *)data : 0) {
    case MESSAGE_CALLS: compare_receive(j, data, bytes); break;
    case MESSAGE_NAME: comm_name_receive(j, data, bytes); break;
    case MESSAGE_JOIN: members_receive(j, from, data, bytes); break;
    case MESSAGE_STATE: stuck_receive(j, from, data, bytes); break;
    case MESSAGE_WINDOW: windows_receive(j, data, bytes); break;
    default: break;
    }
}

void judge_failed(struct judge *j, bool cuda, const char *code, const char *text,
                  struct judge_at at) {
    groups_call_failed(j, at);
    host_memory_changed(j);
    failed(j, code, text, at);
    if (!cuda)
        calls_failure(j, text, at);
}

void judge_comm_ends(struct judge *j, int comm, enum judge_end how, struct judge_at at) {
    graph_comm_ends(j, comm, how, at);
    uses_comm_ends(j, comm, how);
    background_ready(j, -1, comm); // no more
    calls_comm_ends(j, comm, how, at);
    host_memory_changed(j);
}

void judge_meets(struct judge *j, uint64_t number) {
    j->meetings = number;
    j->thread->meeting = number;
}

void judge_stream_gone(struct judge *j, int number) {
    graph_stream_gone(j, number);
    order_stream_gone(j, number);
}

void judge_finishes(struct judge *j, enum judge_finish how, struct judge_at at) {
    waits_begin_finish(j, how, at);
    read_post(j);
}

void judge_exits(struct judge *j) {
    const struct judge_at nowhere = {"the end of the program", 0};
    groups_check_open(j, -1, nowhere);
    calls_check_unfinished(j);
}
