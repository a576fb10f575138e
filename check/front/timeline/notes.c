/*
 * notes.c: the notes of this rank: what was in its streams, and what its host waited for.
 */
#define _GNU_SOURCE
#include "notes.h"

#include "timeline.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
int timeline_on;
struct notes notes;

double real_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double host_time(void) {
    double modelled;
    return OVER_STANDIN && STANDIN(clock)(&modelled) ? modelled : real_time();
}

const char *clock_name(void) {
    double unused;
    return OVER_STANDIN ? STANDIN(clock)(&unused) : NULL;
}

void nap(void) {
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

int notes_add(const struct trace_note *note) {
    if (notes.n == MOST_NOTES) {
        notes.lost++;
        return NONE;
    }
    if (notes.n == notes.room) {
        notes.room = notes.room ? 2 * notes.room : 256;
        notes.at = must_grow(notes.at, notes.room * sizeof *notes.at);
    }
    notes.at[notes.n] = (struct entry){*note, NONE};
    return (int)notes.n++;
}

void copy_name(char to[TRACE_NAME], const char *from) {
    snprintf(to, TRACE_NAME, "%s", from);
}

static struct map counters;

uint64_t notes_count(uint64_t a, uint64_t b) {
    uint64_t key = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    uint64_t *counter = table_get(&counters, (void *)(uintptr_t)key);
    if (!counter)
        table_put(&counters, (void *)(uintptr_t)key,
                  counter = must_alloc(sizeof *counter));
    return ++*counter;
}

static __thread int my_thread = NONE, my_note = NONE;

static int thread_number(void) {
    if (my_thread == NONE) {
        pthread_mutex_lock(&notes_lock);
        my_thread = notes.threads++;
        pthread_mutex_unlock(&notes_lock);
    }
    return my_thread;
}

void host_begins(struct judge_at at, struct trace_note note) {
    note.track = -1 - thread_number();
    note.start = host_time();
    note.end = note.start - 1;
    note.site = at.site;
    note.rank = note.type = note.redop = note.root = note.peer = -1;
    copy_name(note.name, at.call);
    copy_name(note.call, at.call);
    pthread_mutex_lock(&notes_lock);
    if (note.comm)
        note.order = notes_count(note.comm, UINT64_MAX);
    my_note = notes_add(&note);
    pthread_mutex_unlock(&notes_lock);
}

void host_ends(bool may_return_at_once) {
    const double short_time = 1e-4;
    double now = host_time();
    pthread_mutex_lock(&notes_lock);
    if (my_note != NONE) {
        struct trace_note *note = &notes.at[my_note].note;
        note->end = now;
        if (may_return_at_once && now - note->start < short_time)
            note->name[0] = '\0';
        if (!note->name[0] && (size_t)my_note == notes.n - 1)
            notes.n--;
    }
    my_note = NONE;
    pthread_mutex_unlock(&notes_lock);
}
